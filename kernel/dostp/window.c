// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/* Which messages came before: see window.h. */
#include "window.h"

#define DOSTP_WINDOW_IDS 64

static u64 dostp_window_key(const struct dostp_header *header)
{
	return (u64)header->source << 32 | (u32)header->source_port << 16 | header->destination_port;
}

static unsigned int dostp_window_set(const struct dostp_window *window, u64 key)
{
	u64 mixed = (key ^ window->seed) * 0x9e3779b97f4a7c15ULL;

	mixed = (mixed ^ mixed >> 32) * (window->seed | 1);
	return mixed >> 56;
}

static bool dostp_window_is_fresh(const struct dostp_window *window, const struct dostp_flow *flow,
				  unsigned long now)
{
	return now - flow->used < window->age;
}

bool dostp_window_has(const struct dostp_window *window, const struct dostp_header *header,
		      unsigned long now)
{
	u64 key = dostp_window_key(header);
	const struct dostp_flow *flow = window->flows[dostp_window_set(window, key)];

	for (int way = 0; way < DOSTP_WINDOW_WAYS; way++, flow++) {
		u16 behind = flow->newest - header->id;

		if (flow->key == key && dostp_window_is_fresh(window, flow, now))
			return behind < DOSTP_WINDOW_IDS && flow->came >> behind & 1;
	}
	return false;
}

static bool dostp_window_note_id(struct dostp_flow *flow, u16 id)
{
	s16 ahead = (s16)(u16)(id - flow->newest);
	u64 bit;

	if (ahead > 0) {
		flow->came = ahead < DOSTP_WINDOW_IDS ? flow->came << ahead | 1 : 1;
		flow->newest = id;
		return true;
	}
	if (ahead <= -DOSTP_WINDOW_IDS) {
		flow->came = 1;
		flow->newest = id;
		return true;
	}
	bit = 1ULL << -ahead;
	if (flow->came & bit)
		return false;
	flow->came |= bit;
	return true;
}

bool dostp_window_note(struct dostp_window *window, const struct dostp_header *header,
		       unsigned long now)
{
	u64 key = dostp_window_key(header);
	struct dostp_flow *flow = window->flows[dostp_window_set(window, key)], *place = flow;
	bool is_fresh;

	for (int way = 0; way < DOSTP_WINDOW_WAYS; way++, flow++) {
		if (flow->key == key) {
			place = flow;
			break;
		}
		if (!flow->key || (place->key && now - flow->used > now - place->used))
			place = flow;
	}
	is_fresh = place->key == key && dostp_window_is_fresh(window, place, now);
	place->used = now;
	if (is_fresh)
		return dostp_window_note_id(place, header->id);
	place->key = key;
	place->newest = header->id;
	place->came = 1;
	return true;
}

void dostp_window_forget(struct dostp_window *window, u16 source)
{
	for (int set = 0; set < DOSTP_WINDOW_SETS; set++)
		for (int way = 0; way < DOSTP_WINDOW_WAYS; way++)
			if (window->flows[set][way].key >> 32 == source)
				window->flows[set][way].key = 0;
}
