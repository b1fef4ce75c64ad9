//! The source of a configuration: fields by name, such as the attributes of a Python object.

use crate::error::Error;

/// Fields by name. The methods that check name the field in their errors.
pub trait Fields {
    /// An error of the source, or of a check.
    type Error;

    /// Converts the error of a check.
    fn refuse(error: Error) -> Self::Error;

    /// Reads a number.
    ///
    /// # Errors
    /// If there is no such field, or it has another type.
    fn number(&self, name: &'static str) -> Result<f64, Self::Error>;

    /// Reads a whole number.
    ///
    /// # Errors
    /// As `number`.
    fn whole(&self, name: &'static str) -> Result<u32, Self::Error>;

    /// Reads a flag.
    ///
    /// # Errors
    /// As `number`.
    fn flag(&self, name: &'static str) -> Result<bool, Self::Error>;

    /// Reads a text or None.
    ///
    /// # Errors
    /// As `number`.
    fn text(&self, name: &'static str) -> Result<Option<String>, Self::Error>;

    /// Reads a whole number of at least 1.
    ///
    /// # Errors
    /// As `whole`, and for 0.
    fn count(&self, name: &'static str) -> Result<u32, Self::Error> {
        match self.whole(name)? {
            0 => Err(Self::refuse(Error::InvalidArgument(format!("{name} must be at least 1, not 0")))),
            count => Ok(count),
        }
    }

    /// Reads a finite number.
    ///
    /// # Errors
    /// As `number`, and for other numbers.
    fn finite(&self, name: &'static str) -> Result<f64, Self::Error> {
        accept(name, self.number(name)?, "a finite number", |_| true).map_err(Self::refuse)
    }

    /// Reads a finite number of at least 0.
    ///
    /// # Errors
    /// As `number`, and for other numbers.
    fn not_negative(&self, name: &'static str) -> Result<f64, Self::Error> {
        accept(name, self.number(name)?, "a finite number of at least 0", |number| number >= 0.0).map_err(Self::refuse)
    }

    /// Reads a finite number above 0.
    ///
    /// # Errors
    /// As `number`, and for other numbers.
    fn positive(&self, name: &'static str) -> Result<f64, Self::Error> {
        accept(name, self.number(name)?, "a finite number above 0", |number| number > 0.0).map_err(Self::refuse)
    }

    /// Reads the value with one of these names.
    ///
    /// # Errors
    /// As `text`, and for another name.
    fn one_of<T: Copy, const N: usize>(&self, name: &'static str, values: [(Option<&str>, T); N]) -> Result<T, Self::Error> {
        named(name, self.text(name)?.as_deref(), values).map_err(Self::refuse)
    }
}

fn accept(name: &str, number: f64, right: &str, is_right: impl Fn(f64) -> bool) -> Result<f64, Error> {
    if number.is_finite() && is_right(number) {
        return Ok(number);
    }
    Err(Error::InvalidArgument(format!("{name} must be {right}, not {number}")))
}

/// Returns the value with a given name; None is a name, too.
///
/// # Errors
/// `Error::InvalidArgument` lists the names.
pub fn named<T: Copy, const N: usize>(field: &str, given: Option<&str>, values: [(Option<&str>, T); N]) -> Result<T, Error> {
    let found = values.iter().find(|(name, _)| *name == given);
    found.map(|&(_, value)| value).ok_or_else(|| unknown(field, given, values.map(|(name, _)| name)))
}

/// The error of an unknown name.
pub(crate) fn unknown<const N: usize>(name: &str, given: Option<&str>, known: [Option<&str>; N]) -> Error {
    let shown = |text: Option<&str>| text.map_or("None".into(), |text| format!("{text:?}"));
    Error::InvalidArgument(format!("{name} {} is unknown: one of {}", shown(given), known.map(shown).join(", ")))
}
