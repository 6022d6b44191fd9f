# SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
# Compile probes: what a kernel has is asked of its headers, never of its version.
#
# $(call probe,NAME,LINES) is -DHAVE_NAME=1 if the lines of C compile with the flags of a module, else nothing.
# Lines may hold no apostrophe, and no comma outside of parentheses of their own.
probe = $(shell printf '%b' '$(2)' | $(CC) $(NOSTDINC_FLAGS) $(LINUXINCLUDE) $(KBUILD_CPPFLAGS) $(KBUILD_CFLAGS) \
	$(KBUILD_CFLAGS_MODULE) -DMODULE -DKBUILD_MODNAME='"probe"' -Werror -x c -c -o /dev/null - 2>/dev/null \
	&& echo -DHAVE_$(1)=1)
