//! The part of the kernel that a function belongs to, told by the beginning of its name.

use serde::Serialize;

/// A part of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum KernelPart {
    /// khttpd itself.
    Module,
    /// Sockets, TCP, IP and devices.
    Tcp,
    /// Bytes that are copied.
    Copy,
    /// Threads and work items that are woken and switched to.
    Scheduler,
    /// Names and files.
    Files,
}

impl KernelPart {
    pub(super) const ALL: [Self; 5] = [Self::Module, Self::Tcp, Self::Copy, Self::Scheduler, Self::Files];

    /// Its name for people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::Tcp => "TCP and below",
            Self::Copy => "copying",
            Self::Scheduler => "scheduler",
            Self::Files => "files",
        }
    }

    /// The part of a function; `None` for one that serves all parts (locks, memory, timers).
    pub(super) fn of(function: &str) -> Option<Self> {
        let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| function.starts_with(beginning));
        let parts: [(Self, &[&str]); 5] = [
            (Self::Module, &["khttpd_"]),
            (Self::Copy, COPY),
            (Self::Scheduler, SCHEDULER),
            (Self::Tcp, TCP),
            (Self::Files, FILES),
        ];
        parts.into_iter().find(|(_, beginnings)| begins(beginnings)).map(|(part, _)| part)
    }
}

const COPY: &[&str] =
    &["copy_", "_copy_", "__copy_", "memcpy", "csum_partial", "skb_copy_", "simple_copy", "rep_movs"];

const SCHEDULER: &[&str] = &[
    "schedule",
    "__schedule",
    "preempt_schedule",
    "try_to_wake_up",
    "wake_up",
    "__wake_up",
    "default_wake",
    "autoremove_wake",
    "ep_poll_callback",
    "pollwake",
    "queue_work",
    "__queue_work",
    "queue_delayed_work",
    "__queue_delayed_work",
    "insert_work",
    "kick_pool",
    "kthread_",
    "finish_task_switch",
    "ttwu_",
    "prepare_to_wait",
    "finish_wait",
    "init_wait",
    "select_task_rq",
    "activate_task",
    "enqueue_task",
    "dequeue_task",
    "pick_next_task",
];

const TCP: &[&str] = &[
    "tcp_",
    "__tcp_",
    "inet_",
    "__inet",
    "ip_",
    "__ip_",
    "ip6_",
    "ipv6_",
    "tcp6_",
    "inet6_",
    "sock_",
    "__sock_",
    "kernel_sendmsg",
    "kernel_recvmsg",
    "kernel_accept",
    "kernel_sock",
    "sk_",
    "__sk_",
    "skb_",
    "__skb_",
    "kfree_skb",
    "consume_skb",
    "__alloc_skb",
    "__kfree_skb",
    "__build_skb",
    "dev_",
    "__dev_",
    "netif_",
    "__netif_",
    "loopback_",
    "net_",
    "eth_",
    "napi_",
    "process_backlog",
    "release_sock",
    "lock_sock",
    "__release_sock",
    "__lock_sock",
    "nf_",
    "dst_",
    "bictcp_",
    "cubictcp_",
];

const FILES: &[&str] = &[
    "vfs_",
    "path_",
    "file_",
    "filename_",
    "kernel_read",
    "__kernel_read",
    "lookup_",
    "link_path_walk",
    "dentry_",
    "__d_",
    "d_",
    "dput",
    "iterate_dir",
    "shmem_",
    "ext4_",
    "generic_file_",
    "filemap_",
    "do_dentry_open",
    "fput",
    "alloc_empty_file",
    "walk_component",
    "step_into",
    "complete_walk",
    "terminate_walk",
    "inode_permission",
];

#[cfg(test)]
mod tests {
    use super::KernelPart;

    #[test]
    fn a_function_belongs_where_its_name_says() {
        assert_eq!(KernelPart::of("khttpd_serve"), Some(KernelPart::Module));
        assert_eq!(KernelPart::of("tcp_sendmsg_locked"), Some(KernelPart::Tcp));
        assert_eq!(KernelPart::of("skb_copy_datagram_iter"), Some(KernelPart::Copy));
        assert_eq!(KernelPart::of("__wake_up_sync_key"), Some(KernelPart::Scheduler));
        assert_eq!(KernelPart::of("_raw_spin_lock_bh"), None);
    }
}
