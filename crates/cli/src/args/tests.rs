use super::values::address;
use super::*;
use clap::CommandFactory;

#[test]
fn the_command_line_is_consistent() {
    Args::command().debug_assert();
}

#[test]
fn every_command_shows_an_example() {
    let mut all = Args::command();
    let commands: Vec<_> = all.get_subcommands().cloned().collect();
    assert!(all.render_help().to_string().contains("Examples:\n  craton "));
    for mut command in commands {
        let start = format!("Examples:\n  craton {}", command.get_name());
        let help = command.render_help().to_string();
        let after = help.split_once(&start).map(|(_, after)| after);
        assert!(after.is_some_and(|after| after.starts_with([' ', '\n'])), "{start}");
    }
}

#[test]
fn addresses_are_hexadecimal() {
    assert_eq!((address("0x10"), address("7fA0"), address("0XfF")), (Ok(16), Ok(0x7fa0), Ok(255)));
    for wrong in ["", "0x", "-1", "x", "0x1g", "10000000000000000"] {
        assert!(address(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn numbers_have_limits() {
    assert_eq!(at_least::<1>("1"), Ok(1));
    assert_eq!(at_least::<0>("0"), Ok(0));
    for wrong in ["0", "-1", "x", "", "1.5", "1000001", "99999999999999999999999"] {
        assert!(at_least::<1>(wrong).is_err(), "{wrong}");
    }
    assert_eq!(seconds("2.5"), Ok(Duration::from_millis(2500)));
    for wrong in ["0", "-1", "x", "", "inf", "NaN", "1e300"] {
        assert!(seconds(wrong).is_err(), "{wrong}");
    }
}
