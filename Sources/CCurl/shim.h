#ifndef SEMEL_CCURL_SHIM_H
#define SEMEL_CCURL_SHIM_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <stdint.h>

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

static inline CURLcode semel_easy_set_data_callback(
    CURL *easy, CURLoption option, size_t (*callback)(char *, size_t, size_t, void *)) {
  return curl_easy_setopt(easy, option, callback);
}

/* The status of the last response. */
static inline long semel_easy_status(CURL *easy) {
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

/* The media type of the last response; NULL if it has none. It belongs to the handle. */
static inline const char *semel_easy_content_type(CURL *easy) {
  char *type = NULL;
  curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
  return type;
}

/* The content coding of the last response; NULL if it has none. It belongs to the handle. */
static inline const char *semel_easy_content_coding(CURL *easy) {
  struct curl_header *coding = NULL;
  return curl_easy_header(easy, "Content-Encoding", 0, CURLH_HEADER, -1, &coding) == CURLHE_OK ? coding->value : NULL;
}

/* Whether only the end of the connection has delimited the last response, so that a cut cannot be told from its end. */
static inline int semel_easy_ended_with_connection(CURL *easy) {
  long version = 0;
  curl_off_t length = 0;
  struct curl_header *coding = NULL;
  curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
  curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  long status = semel_easy_status(easy);
  return (version == CURL_HTTP_VERSION_1_0 || version == CURL_HTTP_VERSION_1_1) && length < 0 &&
         status != 204 && status != 304 &&
         curl_easy_header(easy, "Transfer-Encoding", 0, CURLH_HEADER, -1, &coding) != CURLHE_OK;
}

#endif
