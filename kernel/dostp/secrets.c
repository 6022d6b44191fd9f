// SPDX-License-Identifier: GPL-2.0
/*
 * The secrets of a namespace: the file /proc/net/dostp/keys. A secret must never be shown again: the file
 * tells which slots hold one. A write is taken as a whole, or not at all. Its words:
 *
 *   slot N SECRET   puts 64 hexadecimal digits into slot 0 or 1; `none` takes the secret away
 *   send N          sends frames by the secret in this slot
 *   mode mac|aead
 *   off             ends all keys; must be the only word
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#if __has_include(<linux/hex.h>)
#include <linux/hex.h>
#endif
#include <linux/kernel.h>
#include <linux/rtnetlink.h>
#include <linux/seq_file_net.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "keys.h"

/* The next word, or NULL. */
static char *dostp_secrets_word(char **text)
{
	char *word;

	do
		word = strsep(text, " \t\n");
	while (word && !*word);
	return word;
}

/* Reads the number of a slot. */
static bool dostp_secrets_slot(const char *word, u8 *slot)
{
	if (!word || (strcmp(word, "0") && strcmp(word, "1")))
		return false;
	*slot = word[0] - '0';
	return true;
}

/* Puts a secret into a slot, or takes it away. */
static bool dostp_secrets_set(struct dostp_secrets *secrets, const char *number, const char *secret)
{
	u8 slot;

	if (!dostp_secrets_slot(number, &slot) || !secret)
		return false;
	secrets->is_set[slot] = strcmp(secret, "none");
	memzero_explicit(secrets->slots[slot], DOSTP_SECRET_BYTES);
	return !secrets->is_set[slot] ||
	       (strlen(secret) == 2 * DOSTP_SECRET_BYTES &&
		!hex2bin(secrets->slots[slot], secret, DOSTP_SECRET_BYTES));
}

/* Changes the secrets as the words say; false if one is wrong. */
static bool dostp_secrets_parse(struct dostp_secrets *secrets, char *text)
{
	char *word, *value;

	while ((word = dostp_secrets_word(&text))) {
		bool is_right = false;

		value = dostp_secrets_word(&text);
		if (!strcmp(word, "slot")) {
			is_right = dostp_secrets_set(secrets, value, dostp_secrets_word(&text));
		} else if (!strcmp(word, "send")) {
			is_right = dostp_secrets_slot(value, &secrets->sends_by);
		} else if (!strcmp(word, "mode") && value) {
			secrets->is_aead = !strcmp(value, "aead");
			is_right = secrets->is_aead || !strcmp(value, "mac");
		}
		if (!is_right)
			return false;
	}
	return true;
}

/*
 * With RTNL: makes these the secrets of the namespace and frees the former ones; NULL: no keys. The node
 * begins anew where the mode, or whether there are keys, has changed; if it cannot, the former secrets stay.
 */
static int dostp_secrets_take(struct dostp_net *net, struct dostp_secrets *secrets)
{
	struct dostp_node *node = rtnl_dereference(net->node);
	struct dostp_secrets *former = net->secrets;
	int error = 0;

	if (node && node->keys && secrets && secrets->is_aead == former->is_aead)
		error = dostp_keys_change(node, secrets);
	if (error)
		return error;
	net->secrets = secrets;
	if (!former || !secrets || secrets->is_aead != former->is_aead)
		error = dostp_namespace_renew(net);
	if (error) {
		net->secrets = former;
		dostp_namespace_renew(net);
		return error;
	}
	kfree_sensitive(former);
	return 0;
}

/* With RTNL: changes the secrets by the words of a write. */
static int dostp_secrets_apply(struct dostp_net *net, char *text)
{
	struct dostp_secrets *secrets;
	int error = -EINVAL;

	if (!strcmp(strim(text), "off"))
		return dostp_secrets_take(net, NULL);
	secrets = kzalloc(sizeof(*secrets), GFP_KERNEL);
	if (!secrets)
		return -ENOMEM;
	if (net->secrets)
		*secrets = *net->secrets;
	if (!dostp_secrets_parse(secrets, text))
		pr_notice("keys: a word is wrong: slot 0|1 SECRET|none, send 0|1, mode mac|aead, or off\n");
	else if (!secrets->is_set[secrets->sends_by])
		pr_notice("keys: slot %u, which is sent by, would hold no secret\n", secrets->sends_by);
	else
		error = dostp_secrets_take(net, secrets);
	if (error)
		kfree_sensitive(secrets);
	return error;
}

int dostp_secrets_write(struct file *file, char *text, size_t length)
{
	struct net *of = seq_file_single_net(file->private_data);
	int error = -EPERM;

	/* The opener's right counts: a program with more rights may be given the open file as its output. */
	if (file_ns_capable(file, of->user_ns, CAP_NET_ADMIN)) {
		rtnl_lock();
		error = dostp_secrets_apply(dostp_net(of), text);
		rtnl_unlock();
	}
	memzero_explicit(text, length);
	return error;
}

int dostp_secrets_show(struct seq_file *file, void *unused)
{
	struct dostp_net *net = dostp_net(seq_file_single_net(file));
	const struct dostp_secrets *secrets;

	rtnl_lock();
	secrets = net->secrets;
	if (secrets) {
		for (int slot = 0; slot < DOSTP_SLOTS; slot++)
			seq_printf(file, "slot %d %s\n", slot, secrets->is_set[slot] ? "set" : "none");
		seq_printf(file, "send %u\nmode %s\n", secrets->sends_by, secrets->is_aead ? "aead" : "mac");
	} else {
		seq_puts(file, "off\n");
	}
	rtnl_unlock();
	return 0;
}
