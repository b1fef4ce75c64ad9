/** Numbers and results as short texts. */

export const NONE = "–";
const LOCALE = "en-US";
const whole = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat(LOCALE, { notation: "compact", maximumSignificantDigits: 3 });

export type Value = number | null | undefined;
export type Format = (value: number) => string;

export const count: Format = (value) => whole.format(value);
export const compact: Format = (value) => (value < 10_000 ? whole.format(value) : short.format(value).replace("K", "k"));
export const percent: Format = (value) => `${(100 * value).toFixed(1)}%`;
export const fixed: Format = (value) => value.toFixed(3);
export const signed: Format = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(3);
export const seconds: Format = (value) => `${value.toFixed(value < 100 ? 1 : 0)} s`;

export const bytes: Format = (value) => {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000;
  return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
};

/** A term or property of any size: up to six significant digits, whole numbers in full. */
export const general: Format = (value) => {
  if (Number.isInteger(value)) return count(value).replace("-", "−");
  return String(Number(value.toPrecision(6))).replace("-", "−");
};

export const text = (value: Value, format: Format): string =>
  value === null || value === undefined || Number.isNaN(value) ? NONE : format(value);

/** The result of a proof for one player: "win in 3", "draw", "loss in 12". */
export function verdict(proven: Value, distance?: Value): string {
  if (proven === null || proven === undefined) return "";
  const word = proven > 0 ? "win" : proven < 0 ? "loss" : "draw";
  return distance ? `${word} in ${distance}` : word;
}

/** A sign for a proven result that does not depend on colour. */
export const verdictSign = (proven: number): string => (proven > 0 ? "▲" : proven < 0 ? "▼" : "◆");

export const plural = (number: number, word: string): string => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

/** The first characters of a text that is too long for its place. */
export const brief = (value: string, most: number): string => (value.length > most ? `${value.slice(0, most - 1)}…` : value);
