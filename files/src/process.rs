//! The identity of processes: numbers are given again, so a number alone says nothing about a process of earlier.

/// Returns the identity of the machine's boot, or `None` where the system has none (it is not Linux).
///
/// Process numbers, start times and locks of files mean something only within a boot. Containers share it with their machine.
pub fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Returns the time at which a process was started, in clock ticks since the boot, or `None` if no process with this number is alive.
///
/// A number together with this time and [`boot_id`] is given once. A zombie is not alive: it has ended, and only its parent has not
/// taken note of that.
pub fn start_time(process: u32) -> Option<u64> {
    started(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// Reads the line of `/proc/PID/stat` (proc_pid_stat(5)).
fn started(stat: &str) -> Option<u64> {
    // The second field is the name in parentheses, which may contain spaces and parentheses itself, so fields are counted from the
    // last one: the state is the first field then, and `starttime`, the 22nd of the line, has index 19.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_forge_fields() {
        let rest = "1 1 1 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 98765 1000 10 1";
        let line = |name: &str, state: &str| format!("42 ({name}) {state} {rest}\n");
        assert_eq!(started(&line("hekaton", "S")), Some(98_765));
        assert_eq!(started(&line("a) Z 1 (b", "R")), Some(98_765));
        assert_eq!(started(&line("hekaton", "Z")), None);
        assert_eq!(started("42 (hekaton) S 1"), None);
        assert_eq!(started(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn processes_are_told_apart() {
        let own = start_time(std::process::id()).unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(start_time(child.id()).unwrap() >= own);
        child.kill().unwrap();
        // A zombie until its parent waits for it.
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(start_time(child.id()), None);
        child.wait().unwrap();
        assert_eq!(start_time(child.id()), None);
        assert_eq!(boot_id().unwrap().len(), 36);
    }
}
