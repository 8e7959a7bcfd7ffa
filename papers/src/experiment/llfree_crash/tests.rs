use super::*;
use crate::frames::crash::audit::Audit;

fn found(opened: Opened, took_us: u64, lost: Vec<usize>) -> Result<Found, String> {
    let audit = Audit { under_way: 2, losing: usize::from(!lost.is_empty()), lost, held: 5 };
    Ok(Found { opened, took: Duration::from_micros(took_us), operations: 7, audit })
}

#[test]
fn figures_are_of_right_rows_and_wrong_ones_say_why() {
    let recovered = Opened::Recovered { corrected: 3 };
    let rows = [
        row(KILL, 0, 4, 2, found(recovered, 900, vec![7, 8])),
        row(KILL, 1, 4, 2, found(Opened::Clean, 70, vec![])),
        row(KILL, 2, 4, 2, Err("frame 9 is held twice".to_owned())),
        row(CRASHED, 0, 128, 1, found(recovered, 200, vec![])),
        row(CLOSED, 0, 128, 1, found(Opened::Clean, 50, vec![])),
    ];
    assert_eq!(ratios(&rows)["open_closed_vs_crashed"], 0.25);
    let text = show(&rows);
    for part in
        ["2 kills with 2 threads", "14 requests", "1 kills lost frames", "at most 2 frames", "kill 2: failed: frame 9"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!((rows[0].int("corrected"), rows[0].word("opened"), rows[2].num("open_us")), (3, "crashed", 0.0));
}

#[test]
fn a_process_that_ends_by_itself_is_an_error_with_what_it_said() {
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    };
    let ended = kill(shell("echo frame 9 is wrong >&2; exit 1"), || false, Duration::ZERO);
    assert!(ended.as_ref().is_err_and(|why| why.contains("exit status: 1: frame 9 is wrong")), "{ended:?}");
    assert_eq!(kill(shell("sleep 100"), || true, Duration::ZERO), Ok(()));
    assert!(kill(Command::new("/no/such"), || true, Duration::ZERO).is_err_and(|why| why.contains("/no/such")));
}
