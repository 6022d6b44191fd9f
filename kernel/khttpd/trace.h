/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace points of a connection's life, in tracefs as events/khttpd/. docs/khttpd.md says what they
 * mean, and `staunch kernel trace` reads them. Each names its connection by the hash of an address.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM khttpd

#if !defined(KHTTPD_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KHTTPD_TRACE_H

#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "khttpd.h"

/* Bytes of a path in an event, with the 0 behind it: enough to know most files by, in a small event. */
#define KHTTPD_TRACE_PATH_BYTES 48

DECLARE_EVENT_CLASS(khttpd_event,
	TP_PROTO(const void *connection),
	TP_ARGS(connection),
	TP_STRUCT__entry(__field(const void *, connection)),
	TP_fast_assign(__entry->connection = connection;),
	TP_printk("connection=%p", __entry->connection)
);

/* A connection was accepted. */
DEFINE_EVENT(khttpd_event, khttpd_accept, TP_PROTO(const void *connection), TP_ARGS(connection));
/* The socket has bytes to read, room to send, or an end of the peer. */
DEFINE_EVENT(khttpd_event, khttpd_wake, TP_PROTO(const void *connection), TP_ARGS(connection));
/* The cache has the answer to the request. */
DEFINE_EVENT(khttpd_event, khttpd_hit, TP_PROTO(const void *connection), TP_ARGS(connection));
/* The cache has no answer: the file is looked up by its name. */
DEFINE_EVENT(khttpd_event, khttpd_miss, TP_PROTO(const void *connection), TP_ARGS(connection));
/* TCP has all bytes of the answers to all requests so far. */
DEFINE_EVENT(khttpd_event, khttpd_answer, TP_PROTO(const void *connection), TP_ARGS(connection));
/* The module closes the connection, for whatever reason. */
DEFINE_EVENT(khttpd_event, khttpd_close, TP_PROTO(const void *connection), TP_ARGS(connection));
/* A process takes the connection over; the module has no further events of it. */
DEFINE_EVENT(khttpd_event, khttpd_leave, TP_PROTO(const void *connection), TP_ARGS(connection));

/* The head of a request was parsed, and is not refused. A path longer than the event's room is cut. */
TRACE_EVENT(khttpd_request,
	TP_PROTO(const void *connection, const void *path, size_t length),
	TP_ARGS(connection, path, length),
	TP_STRUCT__entry(
		__field(const void *, connection)
		__array(char, path, KHTTPD_TRACE_PATH_BYTES)
	),
	TP_fast_assign(
		__entry->connection = connection;
		length = min_t(size_t, length, KHTTPD_TRACE_PATH_BYTES - 1);
		memcpy(__entry->path, path, length);
		__entry->path[length] = 0;
	),
	TP_printk("connection=%p path=%s", __entry->connection, __entry->path)
);

/* Put the numbers of the deadlines into the events' format, for readers that do not have this header. */
TRACE_DEFINE_ENUM(KHTTPD_HEAD_DEADLINE);
TRACE_DEFINE_ENUM(KHTTPD_IDLE_DEADLINE);
TRACE_DEFINE_ENUM(KHTTPD_BODY_DEADLINE);
TRACE_DEFINE_ENUM(KHTTPD_SEND_DEADLINE);
TRACE_DEFINE_ENUM(KHTTPD_LINGER_DEADLINE);
TRACE_DEFINE_ENUM(KHTTPD_OFFER_DEADLINE);

/* A deadline of the connection has passed. */
TRACE_EVENT(khttpd_expire,
	TP_PROTO(const void *connection, unsigned int deadline),
	TP_ARGS(connection, deadline),
	TP_STRUCT__entry(
		__field(const void *, connection)
		__field(unsigned int, deadline)
	),
	TP_fast_assign(
		__entry->connection = connection;
		__entry->deadline = deadline;
	),
	TP_printk("connection=%p deadline=%s", __entry->connection,
		  __print_symbolic(__entry->deadline,
				   { KHTTPD_HEAD_DEADLINE, "head" },
				   { KHTTPD_IDLE_DEADLINE, "idle" },
				   { KHTTPD_BODY_DEADLINE, "body" },
				   { KHTTPD_SEND_DEADLINE, "send" },
				   { KHTTPD_LINGER_DEADLINE, "linger" },
				   { KHTTPD_OFFER_DEADLINE, "offer" }))
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
