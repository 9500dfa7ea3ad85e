//! The memory usage of the process.

/// Resident memory of this process in bytes, where the system tells.
#[cfg(target_os = "linux")]
pub fn resident() -> Option<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * page_size()?)
}

#[cfg(not(target_os = "linux"))]
pub fn resident() -> Option<usize> {
    None
}

/// Bytes in a page of memory: 4 KiB on most machines, but 16 or 64 KiB on others.
#[cfg(target_os = "linux")]
fn page_size() -> Option<usize> {
    // SAFETY: sysconf reads a constant of the system and has no other effect.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The kernel reports the same amount in kB, without pages, a moment later.
    #[test]
    fn it_agrees_with_what_the_kernel_reports_in_kilobytes() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let reported = line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024;
        let measured = resident().unwrap();
        assert!(measured.abs_diff(reported) < reported / 2 + (1 << 20), "{measured} and {reported}");
    }
}
