#ifndef SEMEL_CLUA_SHIM_H
#define SEMEL_CLUA_SHIM_H
#include <lua.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>

/* The C part of the simulated Redis' scripts: everything that may raise a Lua error, which must not unwind Swift. */

/* Runs redis.call or redis.pcall. The arguments are on the stack. Returns the number of results that it has pushed, or
   -1 if it has pushed an error to be raised. */
typedef int (*semel_lua_command)(void *context, lua_State *state, int is_protected, int line);

struct semel_lua_hook {
  semel_lua_command run;
  void *context;
};

static inline int semel_lua_run(lua_State *state) {
  struct semel_lua_hook *hook = lua_touserdata(state, lua_upvalueindex(1));
  lua_Debug caller;
  int line = lua_getstack(state, 1, &caller) && lua_getinfo(state, "Sl", &caller) ? caller.currentline : -1;
  int result = hook->run(hook->context, state, lua_toboolean(state, lua_upvalueindex(2)), line);
  return result < 0 ? lua_error(state) : result;
}

/* A table with one text, as redis.error_reply and redis.status_reply return it. */
static inline int semel_lua_single(lua_State *state) {
  size_t length;
  const char *text = luaL_checklstring(state, 1, &length);
  lua_createtable(state, 0, 1);
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_pushlstring(state, text, length);
  lua_rawset(state, -3);
  return 1;
}

/* The formats of struct.unpack that Redis' library has for integers. */
static inline int semel_lua_unpack(lua_State *state) {
  const char *format = luaL_checkstring(state, 1);
  size_t length, at = 0;
  const char *data = luaL_checklstring(state, 2, &length);
  int is_big = 0;
  lua_settop(state, 2);
  for (; *format; format++) {
    size_t size;
    int is_signed = *format >= 'a';
    switch (*format) {
      case '>': is_big = 1; continue;
      case '<': case '=': is_big = 0; continue;
      case ' ': continue;
      case 'b': case 'B': size = 1; break;
      case 'h': case 'H': size = 2; break;
      case 'l': case 'L': size = 8; break;
      case 'i': case 'I':
        size = 0;
        while (format[1] >= '0' && format[1] <= '9') size = size * 10 + (size_t)(*++format - '0');
        if (size == 0) size = 4;
        if (size > 8) return luaL_error(state, "integral size %d is larger than limit of %d", (int)size, 8);
        break;
      default: return luaL_error(state, "invalid format option '%c'", *format);
    }
    luaL_argcheck(state, at + size <= length, 2, "data string too short");
    unsigned long long value = 0;
    for (size_t index = 0; index < size; index++) {
      value = value << 8 | (unsigned char)data[at + (is_big ? index : size - 1 - index)];
    }
    luaL_checkstack(state, 1, "too many results");
    if (is_signed && size < 8 && value >> (size * 8 - 1)) value |= ~0ULL << (size * 8);
    lua_pushnumber(state, is_signed ? (lua_Number)(long long)value : (lua_Number)value);
    at += size;
  }
  lua_pushinteger(state, (lua_Integer)at + 1);
  return lua_gettop(state) - 2;
}

/* Reads a global of a script. */
static inline int semel_lua_read_global(lua_State *state) {
  lua_pushvalue(state, 2);
  lua_rawget(state, LUA_GLOBALSINDEX);
  if (lua_isnil(state, -1)) {
    return luaL_error(
      state, "Script attempted to access nonexistent global variable '%s'", lua_tostring(state, 2));
  }
  return 1;
}

static inline int semel_lua_write_global(lua_State *state) {
  return luaL_error(state, "Attempt to modify a readonly table");
}

/* Turns an error into {text, isTable, source, line}. */
static inline int semel_lua_describe(lua_State *state) {
  lua_Debug raiser;
  int is_known = lua_getstack(state, 1, &raiser) && lua_getinfo(state, "nSl", &raiser);
  if (is_known && raiser.what[0] == 'C') {
    is_known = lua_getstack(state, 2, &raiser) && lua_getinfo(state, "nSl", &raiser);
  }
  int is_table = lua_istable(state, 1);
  if (is_table) {
    lua_getfield(state, 1, "err");
  } else {
    lua_pushvalue(state, 1);
  }
  if (!lua_isstring(state, -1)) {
    lua_pop(state, 1);
    lua_pushliteral(state, "unknown error");
  }
  lua_createtable(state, 4, 0);
  lua_insert(state, -2);
  lua_rawseti(state, -2, 1);
  lua_pushboolean(state, is_table);
  lua_rawseti(state, -2, 2);
  if (is_known) {
    lua_pushstring(state, raiser.source);
    lua_rawseti(state, -2, 3);
    lua_pushinteger(state, raiser.currentline);
    lua_rawseti(state, -2, 4);
  }
  return 1;
}

static inline void semel_lua_add_single(lua_State *state, const char *name, const char *field) {
  lua_pushstring(state, field);
  lua_pushcclosure(state, semel_lua_single, 1);
  lua_setfield(state, -2, name);
}

static inline void semel_lua_add_command(lua_State *state, const char *name, int is_protected, int hook) {
  lua_pushvalue(state, hook);
  lua_pushboolean(state, is_protected);
  lua_pushcclosure(state, semel_lua_run, 2);
  lua_setfield(state, -2, name);
}

static inline void semel_lua_open(lua_State *state, const char *name, lua_CFunction open) {
  lua_pushcfunction(state, open);
  lua_pushstring(state, name);
  lua_call(state, 1, 0);
}

/* Creates a state with the libraries and functions that the scripts of Semel use. The environment of scripts is left
   at index 1, and the handler of their errors at index 2. Returns NULL without memory. */
static inline lua_State *semel_lua_create(semel_lua_command run, void *context) {
  lua_State *state = luaL_newstate();
  if (!state) return state;
  semel_lua_open(state, "", luaopen_base);
  semel_lua_open(state, LUA_TABLIBNAME, luaopen_table);
  semel_lua_open(state, LUA_STRLIBNAME, luaopen_string);
  semel_lua_open(state, LUA_MATHLIBNAME, luaopen_math);
  static const char *const removed[] = {"dofile", "loadfile", "print", "newproxy", 0};
  for (int index = 0; removed[index]; index++) {
    lua_pushnil(state);
    lua_setglobal(state, removed[index]);
  }
  struct semel_lua_hook *hook = lua_newuserdata(state, sizeof *hook);
  hook->run = run;
  hook->context = context;
  lua_createtable(state, 0, 4);
  semel_lua_add_command(state, "call", 0, 1);
  semel_lua_add_command(state, "pcall", 1, 1);
  semel_lua_add_single(state, "error_reply", "err");
  semel_lua_add_single(state, "status_reply", "ok");
  lua_setglobal(state, "redis");
  lua_createtable(state, 0, 1);
  lua_pushcfunction(state, semel_lua_unpack);
  lua_setfield(state, -2, "unpack");
  lua_setglobal(state, "struct");
  lua_settop(state, 0);
  lua_createtable(state, 0, 0);
  lua_createtable(state, 0, 2);
  lua_pushcfunction(state, semel_lua_read_global);
  lua_setfield(state, -2, "__index");
  lua_pushcfunction(state, semel_lua_write_global);
  lua_setfield(state, -2, "__newindex");
  lua_setmetatable(state, 1);
  lua_pushcfunction(state, semel_lua_describe);
  return state;
}

/* Compiles a script for later calls. Returns its reference, or LUA_NOREF with the error on the stack. */
static inline int semel_lua_compile(lua_State *state, const char *source, size_t length) {
  if (luaL_loadbuffer(state, source, length, "@user_script")) return LUA_NOREF;
  lua_pushvalue(state, 1);
  lua_setfenv(state, -2);
  return luaL_ref(state, LUA_REGISTRYINDEX);
}

/* Calls a compiled script, and leaves its result or the description of its error on the stack. Returns 0 if it has a
   result. */
static inline int semel_lua_call(lua_State *state, int reference) {
  lua_rawgeti(state, LUA_REGISTRYINDEX, reference);
  return lua_pcall(state, 0, 1, 2);
}

/* The text of a number as an argument of a command, as Redis up to 7.0 writes it. */
static inline void semel_lua_write_number(double number, char *text, size_t size) {
  snprintf(text, size, "%.17g", number);
}

static inline void semel_lua_set_global(lua_State *state, const char *name) { lua_setglobal(state, name); }
static inline void semel_lua_pop(lua_State *state, int count) { lua_pop(state, count); }
static inline int semel_lua_is_no_reference(int reference) { return reference == LUA_NOREF; }
#endif
