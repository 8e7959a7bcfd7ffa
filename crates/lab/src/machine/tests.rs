use super::*;

#[test]
fn lines_of_proc_are_read() {
    assert_eq!(value("model name\t: Some CPU @ 2 GHz\nflags : a", "model name"), Some("Some CPU @ 2 GHz"));
    assert_eq!(value("MemTotal:       24 kB\n", "MemTotal").and_then(bytes), Some(24 * 1024));
    assert_eq!(bytes("24 pages"), None);
    assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
    assert_eq!(chosen(""), None);
}

#[test]
fn lists_of_processors_are_read() {
    assert_eq!(processor_list("0"), Some(vec![0]));
    assert_eq!(processor_list("3,0-1,1"), Some(vec![0, 1, 3]));
    for wrong in ["", "a", "1-", "-1", "2-1", "0,,1", "+1", "0-99999999999"] {
        assert_eq!(processor_list(wrong), None, "{wrong}");
    }
    assert!(!processors().is_empty());
}

#[test]
fn this_machine_has_processors_and_memory() {
    let here = Machine::here();
    assert!(here.cpus > 0 && here.memory_bytes > 1 << 20 && here.kernel != "unknown", "{here:?}");
}
