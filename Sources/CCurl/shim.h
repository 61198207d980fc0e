#ifndef SEMEL_CCURL_SHIM_H
#define SEMEL_CCURL_SHIM_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

/* Typed doors for libcurl's variadic functions, which Swift cannot call. */

static inline CURLcode semel_easy_set_long(CURL *easy, CURLoption option, long value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode semel_easy_set_size(CURL *easy, CURLoption option, int64_t value) {
  return curl_easy_setopt(easy, option, (curl_off_t)value);
}

static inline CURLcode semel_easy_set_string(CURL *easy, CURLoption option, const char *value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode semel_easy_set_pointer(CURL *easy, CURLoption option, const void *value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode semel_easy_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
  return curl_easy_setopt(easy, option, value);
}

/* For both directions of data: writing, header lines and reading have one signature. */
static inline CURLcode semel_easy_set_data_callback(
    CURL *easy, CURLoption option, size_t (*callback)(char *, size_t, size_t, void *)) {
  return curl_easy_setopt(easy, option, callback);
}

static inline CURLcode semel_easy_set_prereq(CURL *easy, curl_prereq_callback callback) {
  return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, callback);
}

static inline CURLcode semel_easy_set_open_socket(
    CURL *easy, curl_socket_t (*callback)(void *, curlsocktype, struct curl_sockaddr *)) {
  return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, callback);
}

static inline CURLcode semel_easy_set_close_socket(CURL *easy, int (*callback)(void *, curl_socket_t)) {
  return curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, callback);
}

static inline void *semel_easy_private(CURL *easy) {
  char *pointer = NULL;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, &pointer);
  return pointer;
}

/* The status of the last answer. */
static inline long semel_easy_status(CURL *easy) {
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

static inline int64_t semel_easy_uploaded(CURL *easy) {
  curl_off_t count = 0;
  curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &count);
  return count;
}

static inline CURLMcode semel_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode semel_multi_set_callbacks(
    CURLM *multi, int (*socket)(CURL *, curl_socket_t, int, void *, void *),
    int (*timer)(CURLM *, long, void *), void *owner) {
  CURLMcode code = curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket);
  if (code == CURLM_OK) code = curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, owner);
  if (code == CURLM_OK) code = curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer);
  if (code == CURLM_OK) code = curl_multi_setopt(multi, CURLMOPT_TIMERDATA, owner);
  return code;
}

/* The next finished transfer and its code, or NULL. */
static inline CURL *semel_multi_next_done(CURLM *multi, CURLcode *code) {
  int left = 0;
  CURLMsg *message;
  while ((message = curl_multi_info_read(multi, &left))) {
    if (message->msg == CURLMSG_DONE) {
      *code = message->data.result;
      return message->easy_handle;
    }
  }
  return NULL;
}

/* epoll's events carry a union, which Swift sees only as a plain number here. */

static inline int semel_epoll_control(int set, int operation, int descriptor, uint32_t events, uint64_t tag) {
  struct epoll_event event;
  memset(&event, 0, sizeof event);
  event.events = events;
  event.data.u64 = tag;
  return epoll_ctl(set, operation, descriptor, &event);
}

struct semel_ready {
  uint64_t tag;
  uint32_t events;
};

#define SEMEL_READY_MAXIMUM 64

/* Waits for at most SEMEL_READY_MAXIMUM events and lays them out as tag and bits. */
static inline int semel_epoll_wait(int set, struct semel_ready *ready, int milliseconds) {
  struct epoll_event events[SEMEL_READY_MAXIMUM];
  int count = epoll_wait(set, events, SEMEL_READY_MAXIMUM, milliseconds);
  for (int index = 0; index < count; index++) {
    ready[index].tag = events[index].data.u64;
    ready[index].events = events[index].events;
  }
  return count;
}

#endif
