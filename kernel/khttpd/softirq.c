// SPDX-License-Identifier: GPL-2.0
/*
 * Requests answered where they come in: in the callback that tells that bytes have come, with the socket
 * locked by the caller.
 *
 * Only whole requests for what the cache holds are answered here, on connections on which nothing else is
 * under way, and only where the socket has room for the answer. Everything else is left in the socket for
 * the work item of mode `ready`. Nothing here sleeps. The same flag keeps this and the work item apart: who
 * finds it set has the work item come again.
 */
#include <linux/percpu.h>
#include <linux/uio.h>
#include <net/tcp.h>

#include "cache.h"
#include "date.h"
#include "khttpd.h"
#include "trace.h"

enum khttpd_softirq_limit {
	/* Answers in one call, which holds up the network. */
	KHTTPD_SOFTIRQ_ANSWERS_MAX = 8,
	/* Most bytes of heads of requests that are looked at in one call. */
	KHTTPD_SOFTIRQ_INPUT_BYTES = 4096,
	/* Most entries of a listing that is answered: each is looked at, which takes 20 instructions. */
	KHTTPD_SOFTIRQ_SHOWN_MAX = 256,
};

/* What one call needs. A processor has one: softirqs do not cut in on each other. */
struct khttpd_softirq_desk {
	struct khttpd_connection *connection;
	unsigned int count;
	size_t length; /* of all answers */
	struct khttpd_entry *entries[KHTTPD_SOFTIRQ_ANSWERS_MAX];
	struct kvec parts[2 * KHTTPD_SOFTIRQ_ANSWERS_MAX];
	/*
	 * The socket that sends is lent one: a fragment of its own, 32 KiB, would be filled with zeros first.
	 * Where one is used up the other one is mostly free again, and then begun anew.
	 */
	struct page_frag fragments[2];
	unsigned int fragment;
	char heads[KHTTPD_SOFTIRQ_ANSWERS_MAX][KHTTPD_ANSWER_BYTES];
	u8 input[KHTTPD_SOFTIRQ_INPUT_BYTES];
};

static struct khttpd_softirq_desk __percpu *desks;

/* Whether the answer to a whole request was laid down. */
static bool khttpd_softirq_answer(struct khttpd_softirq_desk *desk, const struct khttpd_request *request,
				  struct khttpd_text head)
{
	struct sock *sk = desk->connection->socket->sk;
	struct khttpd_output output = { .at = desk->heads[desk->count], .room = KHTTPD_ANSWER_BYTES };
	struct kvec *parts = desk->parts + 2 * desk->count;
	struct khttpd_text body = {};
	struct khttpd_entry *entry;
	size_t length;

	if ((request->method != KHTTPD_GET && request->method != KHTTPD_HEAD) || request->http10 ||
	    !request->keep_alive || request->framing != KHTTPD_NO_BODY || request->expects_continue ||
	    (khttpd.hands_over && request->upgrades))
		return false;
	entry = khttpd_cache_find(request->path, KHTTPD_SOFTIRQ_SHOWN_MAX);
	if (!entry)
		return false;
	khttpd_reply_entry(entry, request, head, &output, &body);
	length = desk->length + output.length + body.length;
	if (output.full || length > KHTTPD_OUTPUT_BYTES || length > max(sk_stream_wspace(sk), 0)) {
		khttpd_cache_put(entry);
		return false;
	}
	trace_khttpd_request(desk->connection, request->path.at, request->path.length);
	trace_khttpd_hit(desk->connection);
	parts[0] = (struct kvec){ output.at, output.length };
	parts[1] = (struct kvec){ (void *)body.at, body.length };
	desk->entries[desk->count++] = entry;
	desk->length = length;
	return true;
}

/* Takes the whole requests at the front of what came; the rest stays in the socket. */
static int khttpd_softirq_take(read_descriptor_t *descriptor, struct sk_buff *skb, unsigned int offset,
			       size_t length)
{
	struct khttpd_softirq_desk *desk = descriptor->arg.data;
	struct khttpd_text input = { desk->input, min_t(size_t, length, sizeof(desk->input)) };
	struct khttpd_request request;
	struct khttpd_refusal refusal;
	size_t taken = 0;

	if (skb_copy_bits(skb, offset, desk->input, input.length))
		return 0;
	while (desk->count < KHTTPD_SOFTIRQ_ANSWERS_MAX && input.length) {
		struct khttpd_search search = {};

		if (khttpd_request_parse(&request, &search, &refusal, input) != KHTTPD_COMPLETE ||
		    !khttpd_softirq_answer(desk, &request, khttpd_text_until(input, request.head_bytes)))
			break;
		taken += request.head_bytes;
		input = khttpd_text_from(input, request.head_bytes);
	}
	if (taken < length)
		descriptor->count = 0;
	return taken;
}

/* What the socket did not take waits in the connection. False where there is no memory for it. */
static bool khttpd_softirq_leave(struct khttpd_softirq_desk *desk, size_t sent)
{
	struct khttpd_room *room = &desk->connection->output;
	size_t length = desk->length - sent;
	struct iov_iter from;

	iov_iter_kvec(&from, ITER_SOURCE, desk->parts, 2 * desk->count, desk->length);
	iov_iter_advance(&from, sent);
	if (!room->at && !khttpd_memory_take_now(room, KHTTPD_OUTPUT_BYTES))
		return false;
	if (copy_from_iter(room->at, length, &from) != length)
		return false;
	desk->connection->output_length = length;
	return true;
}

/* The fragment that has room for all answers, or the other one. */
static struct page_frag *khttpd_softirq_fragment(struct khttpd_softirq_desk *desk)
{
	struct page_frag *fragment = &desk->fragments[desk->fragment];

	if (fragment->page && fragment->size - fragment->offset < desk->length)
		desk->fragment ^= 1;
	return &desk->fragments[desk->fragment];
}

/* Sends all answers at once. Whether none of it is left. */
static bool khttpd_softirq_send(struct khttpd_softirq_desk *desk)
{
	struct khttpd_connection *connection = desk->connection;
	struct msghdr message = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct sock *sk = connection->socket->sk;
	struct page_frag *fragment = khttpd_softirq_fragment(desk);
	int sent;

	iov_iter_kvec(&message.msg_iter, ITER_SOURCE, desk->parts, 2 * desk->count, desk->length);
	swap(sk->sk_frag, *fragment);
	sent = tcp_sendmsg_locked(sk, &message, desk->length);
	swap(sk->sk_frag, *fragment);
	if (sent == desk->length) {
		trace_khttpd_answer(connection);
		return true;
	}
	if ((sent < 0 && sent != -EAGAIN) || !khttpd_softirq_leave(desk, max(sent, 0)))
		connection->broken = true;
	return false;
}

/* Whether the peer has the word with the next request, and nothing else is to be done. */
static bool khttpd_softirq_may(const struct khttpd_connection *connection)
{
	unsigned long apart = BIT(KHTTPD_CLOSED) | BIT(KHTTPD_EXPIRED);

	return connection->phase == KHTTPD_READS && !connection->input_length && !connection->output_length &&
	       !connection->peer_ended && !connection->broken && !connection->empty_line_skipped &&
	       !connection->folder && !khttpd_file_is_sending(&connection->sending) &&
	       !(READ_ONCE(connection->flags) & apart);
}

/* Answers what can be answered. Whether nothing is left to do. */
static bool khttpd_softirq_serve(struct khttpd_connection *connection)
{
	struct khttpd_softirq_desk *desk = this_cpu_ptr(desks);
	struct sock *sk = connection->socket->sk;
	read_descriptor_t descriptor = { .arg.data = desk, .count = 1 };
	unsigned int i;
	bool all;

	desk->connection = connection;
	desk->count = 0;
	desk->length = 0;
	tcp_read_sock(sk, &descriptor, khttpd_softirq_take);
	if (!desk->count)
		return false;
	all = khttpd_softirq_send(desk);
	for (i = 0; i < desk->count; i++)
		khttpd_cache_put(desk->entries[i]);
	atomic64_add(desk->count, &khttpd.requests);
	connection->deadline = KHTTPD_DEADLINES;
	khttpd_connection_expect(connection, KHTTPD_IDLE_DEADLINE, false);
	return all && khttpd_socket_is_empty(sk);
}

bool khttpd_softirq(struct khttpd_connection *connection)
{
	bool done;

	if (test_and_set_bit_lock(KHTTPD_BUSY, &connection->flags))
		return false;
	done = khttpd_softirq_may(connection) && khttpd_softirq_serve(connection);
	clear_bit_unlock(KHTTPD_BUSY, &connection->flags);
	return done;
}

int khttpd_softirq_init(void)
{
	desks = alloc_percpu(struct khttpd_softirq_desk);
	return desks ? 0 : -ENOMEM;
}

void khttpd_softirq_exit(void)
{
	int processor;

	for_each_possible_cpu(processor) {
		struct khttpd_softirq_desk *desk = per_cpu_ptr(desks, processor);
		unsigned int i;

		for (i = 0; i < ARRAY_SIZE(desk->fragments); i++)
			if (desk->fragments[i].page)
				put_page(desk->fragments[i].page);
	}
	free_percpu(desks);
}
