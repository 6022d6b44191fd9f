// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Conditional requests: see condition.h.
 */
#include "condition.h"

#include "date.h"

/*
 * Takes the first entity tag from a list (RFC 9110, section 8.8.3); false where the list ends or
 * is none.
 */
static bool khttpd_condition_tag(struct khttpd_text *list, struct khttpd_text *tag, bool *weak)
{
	struct khttpd_text rest = *list;
	size_t end;

	while (rest.length && (rest.at[0] == ' ' || rest.at[0] == '\t' || rest.at[0] == ','))
		rest = khttpd_text_from(rest, 1);
	*weak = rest.length >= 2 && rest.at[0] == 'W' && rest.at[1] == '/';
	if (*weak)
		rest = khttpd_text_from(rest, 2);
	if (!rest.length || rest.at[0] != '"')
		return false;
	end = khttpd_text_find(khttpd_text_from(rest, 1), '"') + 2;
	if (end > rest.length)
		return false;
	*tag = khttpd_text_until(rest, end);
	*list = khttpd_text_from(rest, end);
	rest = khttpd_text_trim(*list);
	return !rest.length || rest.at[0] == ',';
}

static bool khttpd_condition_value_matches(struct khttpd_text value, struct khttpd_text etag,
					   bool weak_too)
{
	struct khttpd_text tag;
	bool weak;

	if (value.length == 1 && value.at[0] == '*')
		return true;
	while (khttpd_condition_tag(&value, &tag, &weak))
		if ((weak_too || !weak) && khttpd_text_equal(tag, etag))
			return true;
	return false;
}

/*
 * Whether one of the field's lines matches; the head is gone through only where there are
 * several.
 */
static bool khttpd_condition_matches(const struct khttpd_request *request, enum khttpd_field field,
				     const char *field_name, struct khttpd_text head,
				     struct khttpd_text etag)
{
	bool weak_too = field == KHTTPD_IF_NONE_MATCH;
	struct khttpd_text name, value;

	if (!(request->repeated & (1 << field)))
		return khttpd_condition_value_matches(request->fields[field], etag, weak_too);
	while (khttpd_fields_next(&head, &name, &value))
		if (khttpd_text_is_word(name, field_name) &&
		    khttpd_condition_value_matches(value, etag, weak_too))
			return true;
	return false;
}

/*
 * Whether the field came exactly once and is a date; `later` is whether the content was modified
 * after it.
 */
static bool khttpd_condition_date(const struct khttpd_request *request, enum khttpd_field field,
				  const struct khttpd_validators *validators, bool *later)
{
	s64 since;

	if (!(request->present & (1 << field)) || request->repeated & (1 << field) ||
	    !validators->has_modified || !khttpd_date_read(request->fields[field], &since))
		return false;
	*later = validators->modified > since;
	return true;
}

int khttpd_condition_check(const struct khttpd_request *request, struct khttpd_text head,
			   const struct khttpd_validators *validators)
{
	bool later;

	if (request->present & (1 << KHTTPD_IF_MATCH)) {
		if (!khttpd_condition_matches(request, KHTTPD_IF_MATCH, "if-match", head,
					      validators->etag))
			return 412;
	} else if (khttpd_condition_date(request, KHTTPD_IF_UNMODIFIED_SINCE, validators, &later) &&
		   later) {
		return 412;
	}
	if (request->present & (1 << KHTTPD_IF_NONE_MATCH)) {
		if (khttpd_condition_matches(request, KHTTPD_IF_NONE_MATCH, "if-none-match", head,
					     validators->etag))
			return 304;
	} else if (khttpd_condition_date(request, KHTTPD_IF_MODIFIED_SINCE, validators, &later) &&
		   !later) {
		return 304;
	}
	return 0;
}

bool khttpd_condition_range(const struct khttpd_request *request,
			    const struct khttpd_validators *validators)
{
	struct khttpd_text field = request->fields[KHTTPD_IF_RANGE];
	char date[KHTTPD_DATE_BYTES];

	if (!(request->present & (1 << KHTTPD_RANGE)) || request->repeated & (1 << KHTTPD_RANGE))
		return false;
	if (!(request->present & (1 << KHTTPD_IF_RANGE)))
		return true;
	if (request->repeated & (1 << KHTTPD_IF_RANGE))
		return false;
	if (field.length && field.at[0] == '"')
		return khttpd_text_equal(field, validators->etag);
	if (!validators->has_modified || field.length != KHTTPD_DATE_BYTES)
		return false;
	khttpd_date_write(validators->modified, date);
	return !memcmp(date, field.at, KHTTPD_DATE_BYTES);
}
