# FIXME: slow
