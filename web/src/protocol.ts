/**
 * Messages between the page and `pondertree view`: JSON texts over one WebSocket, at most 50 kB each from the server.
 *
 * Every value is for the player named beside it: `q` and `value` of a move are for the player who makes it, `value` of a
 * position for its player to move. Player -1 is chance, whose values are for player 0: its moves are the outcomes, with
 * their probabilities as priors. After a move the server draws them; a page may play another one. Numbers are `null` where the search has none (unvisited, unproven, not evaluated).
 * Proven results are -1, 0 or 1. A position has a number, `position`, which changes with every move, set-up or change of
 * settings; messages of an older position are dropped.
 *
 * The page is at `/?token=T`, the WebSocket at `/socket?token=T`, and a saved tree at `/tree?token=T&name=N`.
 */

export const VERSION = 1;

// ---------------------------------------------------------------- from the server

/** The first message of a connection. */
export interface Hello {
  type: "hello";
  version: number;
  pondertree: string;
  /** Changes when the server restarts: the page then forgets its window of the tree. */
  server: string;
  game: {
    name: string;
    title: string;
    /** The players' names in order. */
    players: string[];
    num_actions: number;
    /** Whether the game has chance nodes. */
    chance: boolean;
    /** Whether positions can be set up by FEN. */
    fen: boolean;
    /** Whether an exact solver can value the moves (`solve`). */
    solver: boolean;
  };
  presets: Preset[];
  /** True for a tree from a file that cannot continue: nothing can be searched; `reason` tells why. */
  read_only: boolean;
  reason: string;
  /** Most nodes of a window, bytes of a message and frames a second. */
  limits: { nodes: number; bytes: number; hertz: number };
}

export interface Preset {
  name: string;
  title: string;
  parameters: Parameter[];
}

export interface Parameter {
  name: string;
  type: "int" | "float" | "bool" | "text" | "choice";
  default: number | boolean | string | null;
  least?: number;
  /** A bound that the number must exceed. */
  above?: number;
  most?: number;
  choices?: string[];
  /** One sentence. */
  help: string;
}

/** The game so far and its board; sent when it changes. */
export interface Position {
  type: "position";
  position: number;
  /** Moves that lead to the shown position, then those taken back that `goto` can return to. */
  moves: { action: number; text: string; player: number }[];
  /** The ply before the first of `moves`: of a long game only those around the shown position are sent. */
  first: number;
  ply: number;
  to_play: number;
  over: boolean;
  /** How the game ended, as a sentence; empty before. */
  outcome: string;
  fen: string | null;
  board: {
    /** An SVG document, or null for a game that has no board: then `text` is shown. */
    svg: string | null;
    text: string;
    /** Degrees by which flipping rotates the board: 180, or 0 where it cannot be flipped (gravity, notation). */
    flip: number;
    /** Distance between the centres of neighbouring cells, in the units of the viewBox. */
    cell: number;
  };
  legal: LegalMove[];
  /** Why the exact solver cannot value the moves here; empty if it may. */
  unsolvable: string;
  settings: Settings;
  /** Evaluation of the game so far: one entry per ply that was searched. Values are for player 0. */
  evaluations: { ply: number; value: number }[];
}

export interface LegalMove {
  action: number;
  text: string;
  /** Centres of the cells that the move goes through, in the units of the board's viewBox: one to place, two to move. */
  cells: [number, number][];
}

export interface Settings {
  preset: string;
  parameters: Record<string, number | boolean | string | null>;
  seed: number | null;
  simulations: number | null;
  seconds: number | null;
  exclude: number[];
  force: number[];
}

/** The state of the search: at most `limits.hertz` a second while it runs, and once when it stops. */
export interface Frame {
  type: "frame";
  position: number;
  sequence: number;
  status: {
    running: boolean;
    simulations: number;
    /** Simulations to stop at; null without a limit. */
    goal: number | null;
    nodes: number;
    bytes: number;
    seconds: number;
    rate: number;
    value: number | null;
    proven: number | null;
    distance: number | null;
    best: number | null;
    /** Mean and largest depth are left out while the search runs: they walk the tree. */
    depth: [number, number] | null;
  };
  /** All moves at the root while they fit, else the most visited; the first entry is the best. */
  moves: MoveRow[];
  /** Changes of the window since the frame before; `reset` replaces it. */
  tree: { reset: boolean; add: TreeNode[]; change: NodeChange[]; remove: number[] };
  /** Shares of the moves now, for the graph over time: [action, share]. */
  shares: [number, number][];
}

export interface MoveRow {
  action: number;
  text: string;
  visits: number;
  share: number;
  prior: number | null;
  /** Prior without root noise. */
  clean_prior: number | null;
  /** The network's (or evaluator's) value of the position after the move, for the player who makes it. */
  network: number | null;
  q: number | null;
  /** The exploration term of the selection score at the root; null where the rule has none. */
  u: number | null;
  score: number | null;
  proven: number | null;
  distance: number | null;
  line: string[];
}

export interface TreeNode {
  /** Small integers, never reused within a position. The root is 0. */
  id: number;
  parent: number | null;
  action: number | null;
  text: string;
  /** Who made the move (the root: who is to move); `q` and `proven` are for this player. */
  player: number;
  visits: number;
  q: number | null;
  prior: number | null;
  proven: number | null;
  terminal: boolean;
  /** Children in the tree that the window leaves out. */
  hidden: number;
  /** Whether the node is on the principal variation. */
  pv: boolean;
}

/** [id, visits, q, proven, hidden, pv] */
export type NodeChange = [number, number, number | null, number | null, number, boolean];

/** Details of one node: everything `pondertree.Node` has. Answer to `inspect`. */
export interface NodeDetails {
  type: "node";
  position: number;
  id: number;
  path: string[];
  board: { svg: string | null; text: string };
  node: Record<string, number | string | boolean | null>;
  moves: MoveRow[];
}

/** One simulation with every term of each choice. Answer to `step`. */
export interface Step {
  type: "step";
  position: number;
  simulation: number;
  choices: {
    player: number;
    chosen: number;
    text: string;
    /** How the move was chosen: by score, opened untried, by the halving schedule, forced. */
    how: string;
    /** Terms that the moves share, such as the weight of the exploration term. */
    shared: [string, number | boolean | string | null][];
    /** One entry per compared move: `terms` in the order of the formula. */
    compared: { action: number; text: string; terms: [string, number | boolean | null][]; score: number | null }[];
  }[];
  /** The value backed up, one per player. */
  values: number[];
  /** Nodes of the window along the path, as far as it shows them. */
  nodes: number[];
}

/** Exact values of the legal moves. Answer to `solve`. */
export interface Solved {
  type: "solved";
  position: number;
  moves: { action: number; value: number | null; distance: number | null }[];
}

export interface Failure {
  type: "error";
  /** The request that failed, if one did. */
  request: number | null;
  message: string;
}

export interface Done {
  type: "done";
  request: number;
}

export type ServerMessage = Hello | Position | Frame | NodeDetails | Step | Solved | Failure | Done;

// ---------------------------------------------------------------- from the page

/** Every request has a number of the page's choosing; `done` or `error` answers it, after the messages it caused. */
export type Request = { request: number } & (
  | { type: "start"; simulations?: number | null; seconds?: number | null }
  | { type: "pause" }
  | { type: "step" }
  /** Plays a move by number or text. `reply` lets the search answer after it, with the limits of the settings. */
  | { type: "play"; action?: number; text?: string; reply?: boolean }
  /** The search plays for the player to move. */
  | { type: "move" }
  | { type: "goto"; ply: number }
  | { type: "setup"; fen?: string; moves?: string }
  | { type: "new" }
  /** A change of `simulations` and `seconds` alone, which limit `start` and replies, keeps the tree and `position`. */
  | { type: "settings"; settings: Partial<Settings> }
  /** What the window shows: nodes opened and closed by hand, fewest visits, most nodes, whether it follows the PV. */
  | { type: "window"; open?: number[]; close?: number[]; least?: number; nodes?: number; follow?: boolean }
  | { type: "inspect"; id: number }
  | { type: "solve" }
  /** Ends the solve under way, whoever asked for it; it is answered by an error. */
  | { type: "cancel" }
  /** Saves the tree; after `done` it can be downloaded at `/tree` by the name, which no other save should have. */
  | { type: "save"; name: string }
);
