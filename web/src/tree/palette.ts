/** The colours of the canvases, read from the style sheet so that themes are described once. */

export interface Palette {
  paper: string;
  ink: string;
  faint: string;
  link: string;
  line: string;
  accent: string;
  /** Values from -1 to 1 in `STEPS` steps: for discs, and paler for boxes under text. */
  strong: string[];
  pale: string[];
  unknown: string;
  series: string[];
}

export const STEPS = 11;
type Colour = [number, number, number];

/** Reads `#rrggbb`. */
export function parseColour(text: string): Colour {
  const value = parseInt(text.trim().slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

export function mix(a: Colour, b: Colour, share: number): Colour {
  return [0, 1, 2].map((channel) => Math.round(a[channel] + (b[channel] - a[channel]) * share)) as Colour;
}

const css = ([red, green, blue]: Colour): string => `rgb(${red},${green},${blue})`;

/** The step of a value; `STEPS` for none. */
export function stepOf(value: number): number {
  if (Number.isNaN(value)) return STEPS;
  const clamped = Math.min(1, Math.max(-1, value));
  return Math.round(((clamped + 1) / 2) * (STEPS - 1));
}

export function readPalette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string): string => style.getPropertyValue(name).trim();
  const [loss, even, win, paper] = ["--loss", "--even", "--win", "--panel"].map((name) => parseColour(read(name)));
  const strong: string[] = [];
  const pale: string[] = [];
  for (let step = 0; step < STEPS; step++) {
    const value = (2 * step) / (STEPS - 1) - 1;
    const colour = mix(even, value < 0 ? loss : win, Math.abs(value) ** 0.6);
    strong.push(css(colour));
    pale.push(css(mix(paper, colour, 0.3)));
  }
  const unknown = read("--faint");
  return {
    paper: read("--panel"),
    ink: read("--ink"),
    faint: unknown,
    link: read("--link"),
    line: read("--best"),
    accent: read("--accent"),
    strong: [...strong, unknown],
    pale: [...pale, read("--panel")],
    unknown,
    series: [1, 2, 3, 4, 5, 6, 7, 8].map((place) => read(`--series-${place}`)),
  };
}
