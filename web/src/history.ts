/** The shares of the moves over time: a bounded number of samples, thinned evenly as the search goes on. */

const MOST_SAMPLES = 512;

export class ShareHistory {
  simulations: number[] = [];
  readonly shares = new Map<number, (number | null)[]>();
  /** Keeps every n-th sample. */
  private stride = 1;
  private skipped = 0;

  clear(): void {
    this.simulations = [];
    this.shares.clear();
    this.stride = 1;
    this.skipped = 0;
  }

  /** Adds a sample; the latest one is always present, so that the graph ends where the search is. */
  add(simulations: number, shares: [number, number][]): void {
    const length = this.simulations.length;
    if (!shares.length || (length && simulations < this.simulations[length - 1])) return;
    const again = length > 0 && (simulations === this.simulations[length - 1] || this.skipped > 0);
    if (again) this.drop();
    this.skipped = (this.skipped + 1) % this.stride;
    const place = this.simulations.push(simulations) - 1;
    for (const [action, share] of shares) {
      let column = this.shares.get(action);
      if (!column) this.shares.set(action, (column = new Array<null>(place).fill(null)));
      column[place] = share;
    }
    for (const column of this.shares.values()) if (column.length === place) column.push(null);
    if (this.simulations.length > MOST_SAMPLES) this.thin();
  }

  /** The moves with the largest shares at the end, best first. */
  leading(most: number): number[] {
    const last = this.simulations.length - 1;
    const share = (action: number): number => this.shares.get(action)?.[last] ?? 0;
    return [...this.shares.keys()].sort((a, b) => share(b) - share(a) || a - b).slice(0, most);
  }

  private drop(): void {
    this.simulations.pop();
    for (const column of this.shares.values()) column.pop();
  }

  private thin(): void {
    const keep = (_: unknown, place: number): boolean => place % 2 === 0;
    this.simulations = this.simulations.filter(keep);
    for (const [action, column] of this.shares) this.shares.set(action, column.filter(keep));
    this.stride *= 2;
  }
}
