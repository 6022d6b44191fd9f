// SPDX-License-Identifier: GPL-2.0
/*
 * The order of things on a connection: receive, understand, answer, send.
 *
 * Never blocks: where the peer has to do something first, the deadline for it is set and the
 * caller waits. One caller at a time serves a connection.
 */
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <net/tcp.h>

#include "khttpd.h"
#include "pages.h"
#include "piece.h"
#include "trace.h"

enum khttpd_serve_limit {
	/* Room that one answer without its body may take; half of all room, so that two fit. */
	KHTTPD_SERVE_ANSWER_BYTES = KHTTPD_OUTPUT_BYTES / 2,
	/* Room that a piece of a listing needs: a row, and what frames and ends it. */
	KHTTPD_SERVE_PIECE_BYTES = KHTTPD_LISTING_ROW_BYTES + 1024,
};

void khttpd_serve_forget(struct khttpd_connection *connection)
{
	if (connection->input.at)
		khttpd_memory_give(&connection->input);
	if (connection->output.at)
		khttpd_memory_give(&connection->output);
}

static bool khttpd_serve_has_body(const struct khttpd_connection *connection)
{
	return khttpd_file_is_sending(&connection->sending) || connection->folder;
}

/* The trace point `khttpd_answer`, once TCP has all bytes of all answers. Costs nothing while it is off. */
static void khttpd_serve_tell(const struct khttpd_connection *connection)
{
	if (trace_khttpd_answer_enabled() && !connection->output_length && !khttpd_serve_has_body(connection))
		trace_khttpd_answer(connection);
}

/*
 * What of an answer's body fits behind its head. False where the file is not any more what the
 * head says.
 */
static bool khttpd_serve_fill(struct khttpd_connection *connection)
{
	struct khttpd_output output = {
		.at = connection->output.at,
		.length = connection->output_length,
		.room = connection->output.size,
	};
	struct khttpd_sending *sending = &connection->sending;
	ssize_t count;

	if (connection->folder) {
		if (output.room - output.length < KHTTPD_SERVE_PIECE_BYTES)
			return true;
		if (!khttpd_folder_write(connection->folder, &output)) {
			khttpd_folder_close(connection->folder);
			connection->folder = NULL;
		}
		connection->output_length = output.length;
		return !output.full;
	}
	count = khttpd_file_read(sending, output.at + output.length, output.room - output.length);
	if (count < 0)
		return false;
	connection->output_length += count;
	if (sending->at == sending->end)
		khttpd_file_end(sending);
	return true;
}

/* Whether the rest of the body can be sent from where it stands. */
static bool khttpd_serve_is_kept(const struct khttpd_connection *connection)
{
	const struct khttpd_sending *sending = &connection->sending;

	return sending->entry && !khttpd.in_pieces && khttpd_pages_can_be_sent(sending->bytes) &&
	       sending->end - sending->at >= KHTTPD_PAGES_BYTES_MIN;
}

/* What the peer took is done with; or the wait for it. `sent` may be minus an errno. */
static enum khttpd_served khttpd_serve_sent(struct khttpd_connection *connection, int sent)
{
	if (sent == -EAGAIN) {
		khttpd_connection_expect(connection, KHTTPD_SEND_DEADLINE, false);
		return KHTTPD_WAITS;
	}
	if (sent <= 0)
		return KHTTPD_ENDED;
	/* The peer takes what it is sent: the next wait begins anew. */
	if (connection->deadline == KHTTPD_SEND_DEADLINE)
		connection->deadline = KHTTPD_DEADLINES;
	return KHTTPD_SPENT;
}

static enum khttpd_served khttpd_serve_send_kept(struct khttpd_connection *connection)
{
	struct khttpd_sending *sending = &connection->sending;
	int sent = khttpd_pages_send(connection->socket, sending->bytes + sending->at,
				     sending->end - sending->at, connection->phase == KHTTPD_LAST);

	if (sent > 0)
		sending->at += sent;
	if (sending->at == sending->end) {
		khttpd_file_end(sending);
		khttpd_serve_tell(connection);
	}
	return khttpd_serve_sent(connection, sent);
}

/*
 * As kernel_sendmsg(). In mode `softirq` a socket may not sleep for memory, and would take a page fragment of
 * its own here, 32 KiB which the kernel fills with zeros. The worker may sleep, and the fragment is its own.
 */
static int khttpd_serve_send_part(struct khttpd_connection *connection, struct msghdr *message,
				  struct kvec *part)
{
	struct sock *sk = connection->socket->sk;
	int sent;

	if (khttpd.mode != KHTTPD_SOFTIRQ)
		return kernel_sendmsg(connection->socket, message, part, 1, part->iov_len);
	iov_iter_kvec(&message->msg_iter, ITER_SOURCE, part, 1, part->iov_len);
	lock_sock(sk);
	khttpd_connection_may_sleep(sk, true);
	sent = tcp_sendmsg_locked(sk, message, part->iov_len);
	khttpd_connection_may_sleep(sk, false);
	release_sock(sk);
	return sent;
}

static enum khttpd_served khttpd_serve_send(struct khttpd_connection *connection)
{
	struct kvec part = {
		.iov_base = connection->output.at + connection->output_sent,
		.iov_len = connection->output_length - connection->output_sent,
	};
	struct msghdr message = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	int sent;

	if (khttpd.in_pieces)
		part.iov_len = khttpd_piece_length(part.iov_base, part.iov_len);
	else if (khttpd_serve_has_body(connection) || connection->phase == KHTTPD_LAST)
		/* The last answer goes in one segment with the end behind it. */
		message.msg_flags |= MSG_MORE;
	sent = khttpd_serve_send_part(connection, &message, &part);
	if (sent > 0)
		connection->output_sent += sent;
	if (connection->output_sent == connection->output_length) {
		connection->output_sent = connection->output_length = 0;
		khttpd_serve_tell(connection);
	}
	return khttpd_serve_sent(connection, sent);
}

/* Room for answers, taken for the first of them: a connection that is handed over needs none. */
static bool khttpd_serve_has_output(struct khttpd_connection *connection)
{
	return connection->output.at || khttpd_memory_take(&connection->output, KHTTPD_OUTPUT_BYTES);
}

/* Answers one request whose head is complete. */
static void khttpd_serve_answer(struct khttpd_connection *connection,
				const struct khttpd_request *request, struct khttpd_text head)
{
	struct khttpd_output output = {
		.at = connection->output.at,
		.length = connection->output_length,
		.room = connection->output_length + KHTTPD_SERVE_ANSWER_BYTES,
	};
	bool keep = request->keep_alive;

	trace_khttpd_request(connection, request->path.at, request->path.length);
	khttpd_body_begin(&connection->body, request);
	connection->peer_asks_no_more = !keep && request->framing == KHTTPD_NO_BODY;
	keep = keep && !khttpd_body_is_lost(&connection->body);
	keep = khttpd_reply(connection, request, head, keep, &output);
	connection->output_length = output.length;
	connection->phase = keep ? KHTTPD_DISCARDS : KHTTPD_LAST;
	connection->empty_line_skipped = false;
	connection->deadline = KHTTPD_DEADLINES;
	atomic64_inc(&khttpd.requests);
}

static void khttpd_serve_refuse(struct khttpd_connection *connection,
				const struct khttpd_refusal *refusal)
{
	struct khttpd_output output = {
		.at = connection->output.at,
		.length = connection->output_length,
		.room = connection->output.size,
	};
	bool omit_body = connection->input_length >= 5 && !memcmp(connection->input.at, "HEAD ", 5);

	khttpd_reply_refusal(refusal, omit_body, &output);
	connection->output_length = output.length;
	connection->phase = KHTTPD_LAST;
	connection->deadline = KHTTPD_DEADLINES;
}

/* Understands what stands at the front of the input. Gives how many bytes of it are done with. */
static size_t khttpd_serve_step(struct khttpd_connection *connection, struct khttpd_text input,
				bool *waits)
{
	struct khttpd_request request;
	struct khttpd_refusal refusal;
	struct khttpd_text rest = input;
	enum khttpd_verdict verdict;
	enum khttpd_body_progress progress;

	if (connection->phase == KHTTPD_DISCARDS) {
		progress = khttpd_body_advance(&connection->body, &rest);
		*waits = progress == KHTTPD_BODY_MORE;
		if (!*waits)
			connection->phase = progress == KHTTPD_BODY_DONE ? KHTTPD_READS
									 : KHTTPD_LAST;
		return input.length - rest.length;
	}
	/*
	 * One empty line before a request is for old clients that send one too many (RFC 9112,
	 * 2.2).
	 */
	if (!connection->empty_line_skipped && input.length >= 2 && !memcmp(input.at, "\r\n", 2)) {
		connection->empty_line_skipped = true;
		memset(&connection->search, 0, sizeof(connection->search));
		return 2;
	}
	verdict = khttpd_request_parse(&request, &connection->search, &refusal, input);
	*waits = verdict == KHTTPD_INCOMPLETE;
	if (verdict == KHTTPD_COMPLETE && khttpd_handover_wants(&request)) {
		/* What was answered before is sent first. */
		*waits = connection->output_length;
		if (!*waits)
			connection->phase = KHTTPD_LEAVES;
		return 0;
	}
	if (verdict != KHTTPD_INCOMPLETE && !khttpd_serve_has_output(connection)) {
		connection->broken = true;
		return 0;
	}
	if (verdict == KHTTPD_COMPLETE) {
		rest = khttpd_text_from(input, request.head_bytes);
		if (khttpd_body_check(&request, rest, &refusal)) {
			khttpd_serve_answer(connection, &request,
					    khttpd_text_until(input, request.head_bytes));
			return request.head_bytes;
		}
		verdict = KHTTPD_REFUSED;
	}
	if (verdict == KHTTPD_REFUSED)
		khttpd_serve_refuse(connection, &refusal);
	return 0;
}

/* Where connections are handed over, bytes leave the socket only now. */
static bool khttpd_serve_done_with(struct khttpd_connection *connection, size_t length)
{
	struct kvec part = { .iov_len = length };
	struct msghdr message = {};

	return !khttpd.hands_over || kernel_recvmsg(connection->socket, &message, &part, 1, length,
						    MSG_DONTWAIT | MSG_TRUNC) == length;
}

/*
 * Understands what came, as long as there is room for answers. False where nothing can be done
 * with it.
 */
static bool khttpd_serve_understand(struct khttpd_connection *connection)
{
	struct khttpd_text input = { connection->input.at, connection->input_length };
	bool waits = false, progress = false;

	if (connection->phase == KHTTPD_DISCARDS && !input.length)
		khttpd_serve_step(connection, input, &waits);
	while (!waits && !connection->broken && input.length &&
	       connection->phase <= KHTTPD_DISCARDS && !khttpd_serve_has_body(connection) &&
	       connection->output_length <= KHTTPD_OUTPUT_BYTES - KHTTPD_SERVE_ANSWER_BYTES) {
		input = khttpd_text_from(input, khttpd_serve_step(connection, input, &waits));
		progress |= !waits;
		/* A small body goes out with its head, and with what was pipelined. */
		connection->broken |= khttpd_serve_has_body(connection) &&
				      !khttpd_serve_is_kept(connection) && !khttpd_serve_fill(connection);
	}
	if (input.length < connection->input_length &&
	    !khttpd_serve_done_with(connection, connection->input_length - input.length))
		connection->broken = true;
	if (input.length && input.length < connection->input_length)
		memmove(connection->input.at, input.at, input.length);
	connection->input_length = input.length;
	return progress || connection->phase >= KHTTPD_LEAVES;
}

/* The deadline for what the peer has to do next. */
static void khttpd_serve_wait(struct khttpd_connection *connection)
{
	if (connection->phase == KHTTPD_DISCARDS)
		khttpd_connection_expect(connection, KHTTPD_BODY_DEADLINE, false);
	else if (connection->input_length || connection->deadline == KHTTPD_HEAD_DEADLINE)
		khttpd_connection_expect(connection, KHTTPD_HEAD_DEADLINE, false);
	else
		khttpd_connection_expect(connection, KHTTPD_IDLE_DEADLINE, false);
	if (!connection->input_length)
		khttpd_serve_forget(connection);
}

/* Room for more input. */
static bool khttpd_serve_make_room(struct khttpd_connection *connection)
{
	struct khttpd_room *input = &connection->input;

	if (!input->at)
		return khttpd_memory_take(input, KHTTPD_INPUT_BYTES);
	if (connection->input_length < input->size)
		return true;
	return input->size < KHTTPD_INPUT_BYTES_MAX &&
	       khttpd_memory_grow(input, min_t(size_t, 2 * input->size, KHTTPD_INPUT_BYTES_MAX),
				  connection->input_length);
}

/*
 * As a reception, of what came behind the bytes that are known, but all of it stays in the socket. They are
 * copied again: TCP has no offset to look from in every kernel, and a head has a bound and a deadline.
 */
static int khttpd_serve_look(struct khttpd_connection *connection)
{
	struct kvec part = { connection->input.at, connection->input.size };
	/* Asked first: whatever came before the end is there then. */
	bool has_ended = READ_ONCE(connection->socket->sk->sk_shutdown) & RCV_SHUTDOWN;
	struct msghdr message = {};
	int count = kernel_recvmsg(connection->socket, &message, &part, 1, part.iov_len,
				   MSG_DONTWAIT | MSG_PEEK);

	if (count <= 0 || count > connection->input_length)
		return count <= 0 ? count : count - connection->input_length;
	return has_ended ? 0 : -EAGAIN;
}

static int khttpd_serve_hear(struct khttpd_connection *connection)
{
	struct kvec part = {
		.iov_base = connection->input.at + connection->input_length,
		.iov_len = connection->input.size - connection->input_length,
	};
	struct msghdr message = {};

	if (khttpd.hands_over)
		return khttpd_serve_look(connection);
	return kernel_recvmsg(connection->socket, &message, &part, 1, part.iov_len, MSG_DONTWAIT);
}

static enum khttpd_served khttpd_serve_receive(struct khttpd_connection *connection)
{
	int count;

	if (connection->peer_ended)
		return KHTTPD_ENDED;
	/* Whatever comes from now on is told. */
	if (khttpd_socket_is_empty(connection->socket->sk)) {
		khttpd_serve_wait(connection);
		return KHTTPD_WAITS;
	}
	if (!khttpd_serve_make_room(connection))
		return KHTTPD_ENDED;
	count = khttpd_serve_hear(connection);
	if (count == -EAGAIN) {
		khttpd_serve_wait(connection);
		return KHTTPD_WAITS;
	}
	if (count < 0)
		return KHTTPD_ENDED;
	connection->peer_ended = !count;
	connection->input_length += count;
	if (connection->phase == KHTTPD_DISCARDS)
		khttpd_connection_expect(connection, KHTTPD_BODY_DEADLINE, true);
	return KHTTPD_SPENT;
}

/* Whether nothing can come of a peer that keeps its word: it asks no more, and all it sent is read. */
static bool khttpd_serve_is_alone(const struct khttpd_connection *connection)
{
	return connection->peer_asks_no_more && !connection->input_length &&
	       skb_queue_empty_lockless(&connection->socket->sk->sk_receive_queue);
}

/*
 * Sends no more, and reads what the peer still sends until it has closed its side: unread bytes
 * would turn the close into a reset that destroys the last answer.
 */
static enum khttpd_served khttpd_serve_linger(struct khttpd_connection *connection)
{
	struct kvec part = { .iov_len = KHTTPD_OUTPUT_BYTES };
	struct msghdr message = {};
	int count;

	if (connection->phase == KHTTPD_LAST) {
		if (connection->peer_ended || khttpd_serve_is_alone(connection))
			return KHTTPD_ENDED;
		connection->phase = KHTTPD_LINGERS;
		connection->input_length = 0;
		khttpd_serve_forget(connection);
		kernel_sock_shutdown(connection->socket, SHUT_WR);
		khttpd_connection_expect(connection, KHTTPD_LINGER_DEADLINE, false);
	}
	/* Thrown away within TCP: nothing is copied. */
	count = kernel_recvmsg(connection->socket, &message, &part, 1, part.iov_len,
			       MSG_DONTWAIT | MSG_TRUNC);
	if (count == -EAGAIN)
		return KHTTPD_WAITS;
	return count > 0 ? KHTTPD_SPENT : KHTTPD_ENDED;
}

/* No process takes the connection: whoever wants an answer may come again. */
static enum khttpd_served khttpd_serve_unavailable(struct khttpd_connection *connection)
{
	struct khttpd_output output = { .room = KHTTPD_OUTPUT_BYTES };

	if (!khttpd_serve_has_output(connection))
		return KHTTPD_ENDED;
	output.at = connection->output.at;
	khttpd_reply_unavailable(&output);
	connection->output_length = output.length;
	connection->phase = KHTTPD_LAST;
	connection->deadline = KHTTPD_DEADLINES;
	atomic64_inc(&khttpd.refused);
	return KHTTPD_SPENT;
}

/* Offers the connection to a process, once; what it holds is not needed any more. */
static enum khttpd_served khttpd_serve_leave(struct khttpd_connection *connection)
{
	if (connection->phase == KHTTPD_OFFERED)
		return test_and_clear_bit(KHTTPD_RETURNED, &connection->flags)
			       ? khttpd_serve_unavailable(connection)
			       : KHTTPD_WAITS;
	connection->phase = KHTTPD_OFFERED;
	connection->input_length = 0;
	khttpd_serve_forget(connection);
	khttpd_connection_expect(connection, KHTTPD_OFFER_DEADLINE, true);
	return khttpd_handover_offer(connection) ? KHTTPD_WAITS : khttpd_serve_unavailable(connection);
}

/* The deadline has passed: a partial head gets 408, everything else an end. */
static bool khttpd_serve_expire(struct khttpd_connection *connection)
{
	static const struct khttpd_refusal late = { 408, "the head of the request took too long" };

	if (connection->deadline == KHTTPD_DEADLINES)
		return true;
	if (time_before(jiffies, READ_ONCE(connection->due))) {
		/* It was put off while it came. */
		deadline_set(&connection->timer, connection->due);
		return true;
	}
	if (connection->phase == KHTTPD_OFFERED) {
		if (khttpd_handover_withdraw(connection))
			set_bit(KHTTPD_RETURNED, &connection->flags);
		return true;
	}
	if (connection->deadline != KHTTPD_HEAD_DEADLINE || !connection->input_length ||
	    !khttpd_serve_has_output(connection))
		return false;
	khttpd_serve_refuse(connection, &late);
	return true;
}

enum khttpd_served khttpd_serve(struct khttpd_connection *connection)
{
	enum khttpd_served served = KHTTPD_SPENT;
	int budget = KHTTPD_SERVE_BUDGET;

	if (test_and_clear_bit(KHTTPD_EXPIRED, &connection->flags) &&
	    !khttpd_serve_expire(connection))
		return KHTTPD_ENDED;
	while (served == KHTTPD_SPENT && budget--) {
		if (connection->broken)
			served = KHTTPD_ENDED;
		else if (connection->output_length)
			served = khttpd_serve_send(connection);
		else if (khttpd_serve_is_kept(connection))
			served = khttpd_serve_send_kept(connection);
		else if (khttpd_serve_has_body(connection))
			served = khttpd_serve_fill(connection) ? KHTTPD_SPENT : KHTTPD_ENDED;
		else if (connection->phase == KHTTPD_LEAVES || connection->phase == KHTTPD_OFFERED)
			served = khttpd_serve_leave(connection);
		else if (connection->phase >= KHTTPD_LAST)
			served = khttpd_serve_linger(connection);
		else if (!khttpd_serve_understand(connection))
			served = khttpd_serve_receive(connection);
	}
	return served;
}
