use super::*;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::file::statistics::Statistics;
use ::parquet::record::RowAccessor;
use craton_base::{PageId, PageRange, Pages};
use std::fs::File;
use std::io::Write;

type Row = (i64, String, u32, u32, u32, bool);

fn event(i: u32) -> Event {
    let kind = [Kind::Alloc, Kind::Free, Kind::Resize][i as usize % 3];
    let density = if i.is_multiple_of(5) { Density::Dense } else { Density::Sparse };
    let span = PageRange::new(PageId(i.wrapping_mul(0x9e37_79b9)), Pages(1 + i % 300));
    Event { time_us: u64::from(i) * 7, kind, span, align: Pages(1 << (i % 9)), density }
}

fn expected(i: u32) -> Row {
    let kind = ["alloc", "free", "resize"][i as usize % 3].to_owned();
    (i64::from(i) * 7, kind, i.wrapping_mul(0x9e37_79b9), 1 + i % 300, 1 << (i % 9), i.is_multiple_of(5))
}

/// As another program reads it.
fn reader(groups: &[Vec<Event>]) -> SerializedFileReader<File> {
    let mut writer = Writer::new(&columns(&[]));
    groups.iter().for_each(|group| writer.group(&columns(group)).unwrap());
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&writer.finish(&[("a key", "its value")])).unwrap();
    SerializedFileReader::new(file).unwrap()
}

fn rows(reader: &SerializedFileReader<File>) -> Vec<Row> {
    let row = |row: ::parquet::record::Row| {
        let number = |i| row.get_uint(i).unwrap();
        let (time, kind) = (row.get_long(0).unwrap(), row.get_string(1).unwrap().clone());
        (time, kind, number(2), number(3), number(4), row.get_bool(5).unwrap())
    };
    reader.get_row_iter(None).unwrap().map(Result::unwrap).map(row).collect()
}

#[test]
fn another_reader_finds_every_event() {
    for n in [0, 1, 7, 8, 9, 1000] {
        let events: Vec<Event> = (0..n).map(event).collect();
        let groups: Vec<Vec<Event>> = events.chunks(300).map(<[Event]>::to_vec).collect();
        let reader = reader(&groups);
        assert_eq!(rows(&reader), (0..n).map(expected).collect::<Vec<_>>(), "{n}");
        assert_eq!(reader.metadata().num_row_groups(), groups.len());
    }
}

#[test]
fn a_group_has_the_ends_of_its_times_and_the_file_its_keys() {
    let reader = reader(&[(0..10).map(event).collect(), (10..30).map(event).collect()]);
    let metadata = reader.metadata();
    let ends = metadata.row_groups().iter().map(|group| match group.column(0).statistics() {
        Some(Statistics::Int64(times)) => (*times.min_opt().unwrap(), *times.max_opt().unwrap()),
        other => panic!("{other:?}"),
    });
    assert_eq!(ends.collect::<Vec<_>>(), [(0, 63), (70, 203)]);
    let file = metadata.file_metadata();
    let pair = &file.key_value_metadata().unwrap()[0];
    assert_eq!((pair.key.as_str(), pair.value.as_deref()), ("a key", Some("its value")));
    assert_eq!(file.num_rows(), 30);
}
