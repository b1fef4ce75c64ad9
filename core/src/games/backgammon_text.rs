//! Text of backgammon: notation of moves and rolls, starts, the board.

use std::fmt;

use super::backgammon::{Backgammon, DICE};
use super::backgammon_checkers::{Checkers, BAR, CHECKERS, OFF};
use super::board_text::{parse_by_name, write_status};
use crate::error::Error;
use crate::games::{Action, Game};

/// The number of rolls: outcomes from here on give the opening to O.
const ROLLS: Action = DICE.len() as Action;

/// A checker's move: where it starts and ends, counted in points to go (bar: 25, off: 0), and whether it hits.
type Hop = (u32, u32, bool);

/// Formats an action, or an outcome, of a state.
pub(super) fn text_of(state: &Backgammon, action: Action) -> String {
    if state.dice[0] == 0 {
        let roll = roll_text(action);
        return match (state.is_opening, action >= ROLLS) {
            (false, _) => roll,
            (true, false) => format!("X {roll}"),
            (true, true) => format!("O {roll}"),
        };
    }
    let mut hops = hops_of(state, action);
    // The longest way to go first.
    hops.sort_by_key(|&(from, to, _)| std::cmp::Reverse((from, to)));
    let star = |is_hit: bool| if is_hit { "*" } else { "" };
    let text = |&(from, to, is_hit): &Hop| format!("{}/{}{}", point_name(from), point_name(to), star(is_hit));
    match hops.as_slice() {
        [] => "pass".into(),
        [one, other] if one == other => format!("{}(2)", text(one)),
        [one, other] if one.1 == other.0 => format!("{}/{}{}", text(one), point_name(other.1), star(other.2)),
        [one, other] => {
            let is_hit_before = one.2 && one.1 == other.1;
            format!("{} {}", text(one), text(&(other.0, other.1, other.2 && !is_hit_before)))
        }
        hops => hops.iter().map(text).collect(),
    }
}

fn roll_text(outcome: Action) -> String {
    let [high, low] = DICE[usize::from(outcome % ROLLS)];
    format!("{high}-{low}")
}

fn point_name(to_go: u32) -> String {
    match to_go {
        OFF => "bar".into(),
        0 => "off".into(),
        _ => to_go.to_string(),
    }
}

/// Returns the moves of an action. Each that reaches a blot counts as hit.
fn hops_of(state: &Backgammon, action: Action) -> Vec<Hop> {
    let hop = |(origin, die): (u32, u32)| {
        let is_hit = state.clone().move_checker(origin, die);
        (OFF - origin, OFF.saturating_sub(origin + die), is_hit)
    };
    state.moves_of(action).map(hop).collect()
}

/// Parses an action: moves in any order, with or without the points where a checker touches down, and hits; `6/5(2)` is two moves.
pub(super) fn parse_action(state: &Backgammon, text: &str) -> Result<Action, Error> {
    let given = text.trim().to_ascii_lowercase();
    if state.dice[0] == 0 {
        let dice: String = given.chars().filter(|symbol| symbol.is_ascii_digit()).collect();
        let means = |outcome: &Action| {
            let roll = roll_text(*outcome).replace('-', "");
            let is_roll = dice == roll || dice.chars().rev().collect::<String>() == roll;
            let starter = given.trim_end_matches(|symbol: char| symbol.is_ascii_digit() || symbol == '-').trim();
            is_roll
                && given.matches('-').count() <= 1
                && starter == if state.is_opening { ["x", "o"][usize::from(*outcome >= ROLLS)] } else { "" }
        };
        return state.legal().into_iter().find(means).map_or_else(|| parse_by_name(state, text), Ok);
    }
    let Some(ways) = parse_ways(&given) else { return parse_by_name(state, text) };
    let legal = state.legal();
    let hops = |action: Action| hops_of(state, action).into_iter().map(|(from, to, _)| (from, to)).collect::<Vec<_>>();
    let single: Vec<(u32, u32)> = ways.iter().flat_map(|way| way.windows(2).map(|pair| (pair[0], pair[1]))).collect();
    let exact = legal.iter().find(|&&action| sorted(hops(action)) == sorted(single.clone()));
    // Without the points between, one action must be meant.
    let meant: Vec<&Action> = legal.iter().filter(|&&action| joined(hops(action)) == joined(single.clone())).collect();
    match (exact, meant.as_slice()) {
        (Some(&action), _) => Ok(action),
        (None, [action]) => Ok(**action),
        _ => parse_by_name(state, text),
    }
}

fn sorted(mut hops: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    hops.sort_unstable();
    hops
}

/// Returns the moves, sorted, with two in a row as one.
fn joined(hops: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    match sorted(hops).as_slice() {
        [(middle, to), (from, end)] if end == middle => vec![(*from, *to)],
        hops => hops.to_vec(),
    }
}

/// Parses ways of checkers such as `13/8/5*` or `6/5(2)`: points to go.
fn parse_ways(text: &str) -> Option<Vec<Vec<u32>>> {
    let point = |name: &str| match name.trim_end_matches('*') {
        "bar" => Some(OFF),
        "off" => Some(0),
        number => number.parse().ok().filter(|point| (1..OFF).contains(point)),
    };
    let mut ways = Vec::new();
    for part in text.split([' ', ',']).filter(|part| !part.is_empty()) {
        let (way, times) = match part.strip_suffix(')').and_then(|part| part.split_once('(')) {
            Some((way, times)) => (way, times.parse().ok().filter(|times| (1..=4).contains(times))?),
            None => (part, 1),
        };
        let points: Vec<u32> = way.split('/').map(point).collect::<Option<_>>()?;
        ways.extend(std::iter::repeat_n(points, times));
    }
    let is_some = !ways.is_empty() && ways.iter().all(|way| way.len() >= 2);
    is_some.then_some(ways)
}

/// Parses the argument of the constructor: "roll", a roll for X, or a position in the form XGID.
pub(super) fn parse_start(text: &str) -> Result<Backgammon, Error> {
    let opening = Backgammon::opening();
    match text.trim() {
        "roll" => Ok(opening),
        given if given.contains('=') => parse_xgid(given),
        given => {
            let found = opening.parse_action(&format!("x {given}"));
            let roll = found.map_err(|_| {
                Error::InvalidArgument(format!(
                    "start must be \"roll\", the opening roll of X such as \"3-1\", or a position such as \
                     \"XGID=-b----E-C---eE---c-e----B-:0:0:1:31\", not {text:?}"
                ))
            })?;
            Ok(opening.after(roll))
        }
    }
}

/// Parses an XGID: the checkers (capital letters are those of X, who moves from 24 to 1), cube, its owner, turn, dice.
fn parse_xgid(text: &str) -> Result<Backgammon, Error> {
    let wrong = |reason: &str| Error::InvalidPosition(format!("{text:?} is no XGID of a position to play: {reason}"));
    let fields: Vec<&str> = text.split_once('=').map_or(text, |(_, fields)| fields).split(':').collect();
    let [points, _cube, _owner, turn, dice, ..] = fields[..] else {
        return Err(wrong("it has fewer than five fields"));
    };
    if points.len() != 26 || !points.is_ascii() {
        return Err(wrong("the checkers are 26 characters: O's bar, points 1 to 24, X's bar"));
    }
    let mut numbers = [[0; 26]; 2];
    for (to_go, symbol) in points.bytes().enumerate() {
        // Places count from the bar.
        match symbol {
            b'A'..=b'O' => numbers[0][25 - to_go] += u32::from(symbol - b'A') + 1,
            b'a'..=b'o' => numbers[1][to_go] += u32::from(symbol - b'a') + 1,
            b'-' => {}
            _ => return Err(wrong("checkers are - or a letter from A to O, or from a to o")),
        }
    }
    let mut checkers = [Checkers::default(); 2];
    for (player, numbers) in numbers.into_iter().enumerate() {
        let placed: u32 = numbers.iter().sum();
        if placed == 0 || placed > CHECKERS || numbers[OFF as usize] > 0 {
            return Err(wrong("each player has 1 to 15 checkers on points and on the own bar"));
        }
        checkers[player] = Checkers::of((BAR..OFF).zip(numbers).chain([(OFF, CHECKERS - placed)]));
    }
    let turn = match turn {
        "1" => 0,
        "-1" => 1,
        _ => return Err(wrong("the turn is 1 (X) or -1 (O)")),
    };
    let dice = match dice.as_bytes() {
        b"00" => [0, 0],
        &[one @ b'1'..=b'6', other @ b'1'..=b'6'] => [one.max(other) - b'0', one.min(other) - b'0'],
        _ => return Err(wrong("the dice are two digits from 1 to 6, or 00 before the roll")),
    };
    Ok(Backgammon { checkers, dice, turn, is_second_half: false, is_opening: false })
}

/// Writes the points as X counts them: the owner and number of checkers; between and after the points O's bar and checkers off in the
/// upper row, those of X in the lower.
pub(super) fn write_points(state: &Backgammon, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let cell = |player: usize, place: u32| match (state.checkers[player].count(place), player) {
        (0, _) => ".".to_owned(),
        (number, 0) => format!("X{number}"),
        (number, _) => format!("O{number}"),
    };
    let point = |point: u32| match cell(0, OFF - point) {
        empty if empty == "." => cell(1, point),
        held => held,
    };
    let line = |left: Vec<String>, bar: String, right: Vec<String>, off: String| {
        let cells = left.into_iter().chain([bar]).chain(right).chain([off]);
        cells.map(|cell| format!("{cell:<3}")).collect::<Vec<_>>().join(" ").trim_end().to_owned()
    };
    let numbers = |points: &[u32]| points.iter().map(u32::to_string).collect();
    let held = |points: &[u32]| points.iter().copied().map(point).collect();
    let (left, right): (Vec<u32>, Vec<u32>) = ((13..19).collect(), (19..25).collect());
    writeln!(formatter, "{}", line(numbers(&left), "bar".into(), numbers(&right), "off".into()))?;
    writeln!(formatter, "{}", line(held(&left), cell(1, BAR), held(&right), cell(1, OFF)))?;
    let (left, right): (Vec<u32>, Vec<u32>) = ((7..13).rev().collect(), (1..7).rev().collect());
    writeln!(formatter, "{}", line(held(&left), cell(0, BAR), held(&right), cell(0, OFF)))?;
    writeln!(formatter, "{}", line(numbers(&left), "bar".into(), numbers(&right), "off".into()))?;
    let player = ["X", "O"][usize::from(state.turn & 1)];
    match (state.outcome(), state.is_opening, state.dice) {
        (Some(_), ..) => write_status(state, formatter),
        (None, true, _) => formatter.write_str("the dice decide who starts"),
        (None, false, [0, _]) => write!(formatter, "{player} rolls the dice"),
        (None, false, [high, low]) => {
            let half = if state.is_second_half { ", second half" } else { "" };
            write!(formatter, "{player} to move, {high}-{low}{half}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays actions and outcomes by name.
    fn after(start: &str, names: &[&str]) -> Backgammon {
        names.iter().fold(parse_start(start).expect("a start"), |state, name| state.after(state.parse_action(name).expect(name)))
    }

    #[test]
    fn moves_are_written_as_usual() {
        let start = after("3-1", &[]);
        let texts: Vec<String> = start.legal().into_iter().map(|action| start.action_to_string(action)).collect();
        assert_eq!(texts.len(), 16, "{texts:?}");
        for text in ["8/5 6/5", "24/21/20", "24/23 13/10", "24/21 6/5"] {
            assert!(texts.contains(&text.to_owned()), "{text} in {texts:?}");
        }
        for (given, text) in [("6/5 8/5", "8/5 6/5"), (" 6/5,8/5* ", "8/5 6/5"), ("24/20", "24/21/20"), ("21/20 24/21", "24/21/20")] {
            let action = start.parse_action(given).expect(given);
            assert_eq!(start.action_to_string(action), text);
        }
        for wrong in ["", "8/3", "8/5", "8/5 6/5 6/5", "pass", "8/5(2)", "8//5", "x", "8/5(0) 8/5 6/5"] {
            assert!(matches!(start.parse_action(wrong), Err(Error::InvalidAction(_))), "{wrong}");
        }
    }

    #[test]
    fn hits_the_bar_and_doubles_are_written() {
        let state = after("3-1", &["13/10 6/5", "4-4"]);
        let twice = state.after(state.parse_action("24/20*(2)").expect("doubles"));
        assert_eq!((state.action_to_string(state.parse_action("24/20(2)").expect("doubles")).as_str(), twice.to_play()), ("24/20*(2)", 1));
        let hit = after("6-2", &["24/18 13/11", "6-1", "8/7* 13/7", "6-3"]);
        assert_eq!(hit.legal().iter().filter(|&&action| hit.action_to_string(action).starts_with("bar/22")).count(), hit.legal().len());
        assert!(hit.to_string().contains("X1"), "{hit}");
    }

    #[test]
    fn positions_of_the_form_xgid_are_starts() {
        assert_eq!(after("XGID=-b----E-C---eE---c-e----B-:0:0:1:31:0:0:0:0:10", &[]), Backgammon::start());
        let end =
            after("XGID=-BA--------------------a-a-:0:0:1:00".replace("--------------------", "-------------------").as_str(), &["2-1"]);
        assert_eq!(end.legal().len(), 2, "{end}");
        for wrong in [
            "XGID=",
            "XGID=-b:0:0:1:31",
            "XGID=-z----E-C---eE---c-e----B-:0:0:1:31",
            "XGID=-b----E-C---eE---c-e----B-:0:0:2:31",
            "XGID=-b----E-C---eE---c-e----B-:0:0:1:71",
            "XGID=--------------------------:0:0:1:31",
            "XGID=-b----E-C---eE---c-e----BO:0:0:1:31",
        ] {
            assert!(matches!(parse_start(wrong), Err(Error::InvalidPosition(_))), "{wrong}");
        }
        for wrong in ["3-3", "7-1", "", "x 3-1", "start"] {
            assert!(matches!(parse_start(wrong), Err(Error::InvalidArgument(_))), "{wrong}");
        }
    }

    #[test]
    fn board_text_shows_both_bars() {
        let text = after("roll", &[]).to_string();
        let expected = "13  14  15  16  17  18  bar 19  20  21  22  23  24  off\nX5  .   .   .   O3  .   .   O5  .   .   .   .   X2  .\n\
             O5  .   .   .   X3  .   .   X5  .   .   .   .   O2  .\n12  11  10  9   8   7   bar 6   5   4   3   2   1   off\n\
             the dice decide who starts";
        assert_eq!(text, expected);
    }
}
