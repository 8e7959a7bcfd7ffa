//! The page's files, part of the program.

use crate::http::Answer;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! files {
    ($($path:literal $file:literal $kind:ident;)*) => {
        &[$(($path, $kind, include_str!(concat!("../assets/", $file)))),*]
    };
}

const FILES: &[(&str, &str, &str)] = files! {
    "/" "index.html" HTML;
    "/style.css" "style.css" CSS;
    "/main.js" "main.js" SCRIPT;
    "/format.js" "format.js" SCRIPT;
    "/ledger.js" "ledger.js" SCRIPT;
    "/chart.js" "chart.js" SCRIPT;
    "/map.js" "map.js" SCRIPT;
    "/classes.js" "classes.js" SCRIPT;
    "/flame.js" "flame.js" SCRIPT;
};

pub fn find(path: &str) -> Answer {
    let file = FILES.iter().find(|(name, ..)| *name == path);
    let wrong = || Answer::wrong(404, "there is no such page; / is the page, /metrics and /api are for programs");
    file.map_or_else(wrong, |(_, kind, text)| Answer::new(200, kind, text.as_bytes()))
}
