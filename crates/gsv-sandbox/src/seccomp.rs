//! The filter for system calls that no command needs, or that would lead out of the sandbox.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};

/// Which sockets a command may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// None but connected pairs: without namespaces every other socket could reach other programs.
    None,
    /// Unix, IPv4, IPv6 and netlink: a network namespace keeps them inside.
    Isolated,
}

const REFUSED: &[libc::c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Operations that other filters do not see, and kernel interfaces.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    // Mounts, namespaces, and files by handle.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
];

/// Memory, messages and locks that programs of a user share by a number. A namespace keeps those of the user out; without one, none can be had.
const SHARED: &[libc::c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// They change what is known of a file besides its content. A read-only mount refuses them; Landlock does not see them.
const ABOUT_FILES: &[libc::c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];
/// Newer calls have the same number on every machine.
const FCHMODAT2: libc::c_long = 452;
const SETXATTRAT: libc::c_long = 463;
const REMOVEXATTRAT: libc::c_long = 466;
const FILE_SETATTR: libc::c_long = 469;
/// Their earlier forms.
#[cfg(not(any(target_arch = "aarch64", target_arch = "riscv64")))]
const ABOUT_FILES_BEFORE: &[libc::c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
const ABOUT_FILES_BEFORE: &[libc::c_long] = &[];
/// What a command that changes nothing may ask of an open file. A file system has requests of its own that change a file, a folder or the
/// disk through a file that is open for reading only (attributes, generation, verity, snapshots), so the others are refused.
const ASKED_OF_FILES: [i64; 19] = [
    1,           // FIBMAP
    2,           // FIGETBSZ
    0x5401,      // TCGETS
    0x5402,      // TCSETS
    0x5403,      // TCSETSW
    0x5404,      // TCSETSF
    0x540b,      // TCFLSH
    0x540f,      // TIOCGPGRP
    0x5410,      // TIOCSPGRP
    0x5413,      // TIOCGWINSZ
    0x541b,      // FIONREAD
    0x5421,      // FIONBIO
    0x5429,      // TIOCGSID
    0x5450,      // FIONCLEX
    0x5451,      // FIOCLEX
    0x5452,      // FIOASYNC
    0x8008_6601, // FS_IOC_GETFLAGS
    0x801c_581f, // FS_IOC_FSGETXATTR
    0xc020_660b, // FS_IOC_FIEMAP
];

/// The types of pairs that stay connected to each other. An end of another pair can name any other socket as its receiver.
const CONNECTED: [libc::c_int; 2] = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET];
const SOCKET_FLAGS: [libc::c_int; 4] = [
    0,
    libc::SOCK_CLOEXEC,
    libc::SOCK_NONBLOCK,
    libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
];

/// Namespaces that a new process could get.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

const LOAD_NUMBER: sock_filter = sock_filter {
    code: 0x20,
    jt: 0,
    jf: 0,
    k: 0,
};

fn refuse_when(code: u16, k: u32, errno: i32) -> [sock_filter; 2] {
    let answer = libc::SECCOMP_RET_ERRNO | u32::try_from(errno).unwrap_or(1);
    [
        sock_filter { code, jt: 0, jf: 1, k },
        sock_filter {
            code: 0x06,
            jt: 0,
            jf: 0,
            k: answer,
        },
    ]
}

/// `read_only`: for a command that changes nothing, where no mount sees to it.
///
/// # Errors
/// A sentence: the filter can't be built for this machine.
pub(crate) fn filter(sockets: Sockets, read_only: bool) -> Result<BpfProgram, String> {
    let failed = |error: &dyn std::fmt::Display| format!("the system-call filter can't be built: {error}");
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, vec![])).collect();
    let condition = |argument, operator, value: i64| {
        let value = u64::try_from(value).unwrap_or_default();
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value).map_err(|error| failed(&error))
    };
    let rule = |conditions| SeccompRule::new(conditions).map_err(|error| failed(&error));
    let mut namespaces = Vec::new();
    for flag in NAMESPACES {
        let mask = SeccompCmpOp::MaskedEq(u64::try_from(flag).unwrap_or_default());
        namespaces.push(rule(vec![condition(0, mask, i64::from(flag))?])?);
    }
    rules.insert(libc::SYS_clone, namespaces);
    let typed = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| i64::try_from(request).unwrap_or_default());
    let mut inputs = Vec::new();
    for request in typed {
        inputs.push(rule(vec![condition(1, SeccompCmpOp::Eq, request)?])?);
    }
    if read_only {
        let others: Result<Vec<_>, _> = (ASKED_OF_FILES.iter())
            .map(|request| condition(1, SeccompCmpOp::Ne, *request))
            .collect();
        inputs.push(rule(others?)?);
        rules.extend(ABOUT_FILES.iter().chain(ABOUT_FILES_BEFORE).map(|call| (*call, vec![])));
    }
    rules.insert(libc::SYS_ioctl, inputs);
    let (of_socket, of_pair) = match sockets {
        Sockets::None => {
            rules.extend(SHARED.iter().map(|call| (*call, vec![])));
            // Limits and priorities of other processes of the user: a limit on its time or its files ends a program. 0 is the caller.
            let others = |argument| rule(vec![condition(argument, SeccompCmpOp::Ne, 0)?]);
            rules.insert(libc::SYS_prlimit64, vec![others(0)?]);
            rules.insert(libc::SYS_setpriority, vec![others(1)?]);
            let family = condition(0, SeccompCmpOp::Ne, i64::from(libc::AF_UNIX))?;
            let mut unconnected = Vec::new();
            for (kind, flags) in CONNECTED
                .iter()
                .flat_map(|kind| SOCKET_FLAGS.map(|flags| (kind, flags)))
            {
                unconnected.push(condition(1, SeccompCmpOp::Ne, i64::from(kind | flags))?);
            }
            (vec![], vec![rule(vec![family])?, rule(unconnected)?])
        }
        Sockets::Isolated => {
            let mut others = Vec::new();
            for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] {
                others.push(condition(0, SeccompCmpOp::Ne, i64::from(family))?);
            }
            let families = vec![rule(others)?];
            (families.clone(), families)
        }
    };
    rules.insert(libc::SYS_socket, of_socket);
    rules.insert(libc::SYS_socketpair, of_pair);
    let arch = std::env::consts::ARCH.try_into().map_err(|error| failed(&error))?;
    let errno = SeccompAction::Errno(u32::try_from(libc::EPERM).unwrap_or(1));
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, errno, arch).map_err(|error| failed(&error))?;
    let program: BpfProgram = filter.try_into().map_err(|error| failed(&error))?;
    Ok(prologue().into_iter().chain(program).collect())
}

/// Checks that a list of rules can't express. `clone3` has its flags in memory, where a filter can't look: programs use `clone`
/// when it does not exist. Numbers with bit 30 are the other names of all calls in the x32 convention; other machines have no such numbers.
fn prologue() -> Vec<sock_filter> {
    const JUMP_EQUAL: u16 = 0x15;
    const JUMP_AT_LEAST: u16 = 0x35;
    let clone3 = u32::try_from(libc::SYS_clone3).unwrap_or(u32::MAX);
    let mut program = vec![LOAD_NUMBER];
    program.extend(refuse_when(JUMP_AT_LEAST, 0x4000_0000, libc::EPERM));
    program.extend(refuse_when(JUMP_EQUAL, clone3, libc::ENOSYS));
    program
}

/// The filter as bubblewrap reads it: the instructions one after the other.
pub(crate) fn bytes(program: &[sock_filter]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for line in program {
        bytes.extend(line.code.to_ne_bytes());
        bytes.extend([line.jt, line.jf]);
        bytes.extend(line.k.to_ne_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sb4_the_filter_fits_and_its_bytes_are_eight_a_line() {
        for sockets in [Sockets::None, Sockets::Isolated] {
            for read_only in [false, true] {
                let program = filter(sockets, read_only).unwrap();
                assert!(program.len() > REFUSED.len() && program.len() < 4096);
                assert_eq!(bytes(&program).len(), program.len() * 8);
            }
        }
    }
}
