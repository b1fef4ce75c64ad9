/** Gestures on the canvas: drag, wheel, pinch, click and double click. */

export interface Gestures {
  pan(x: number, y: number): void;
  zoom(factor: number, x: number, y: number): void;
  stretch(factor: number, y: number): void;
  click(x: number, y: number): void;
  open(x: number, y: number): void;
  hover(x: number, y: number): void;
  leave(): void;
}

/** Pixels that a click may slip. */
const SLIP = 4;

export function listen(canvas: HTMLElement, gestures: Gestures): void {
  const pointers = new Map<number, { x: number; y: number }>();
  let moved = 0;
  let distance = 0;
  const place = (event: MouseEvent): { x: number; y: number } => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    if (pointers.size === 1) moved = 0;
    distance = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = place(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      gestures.hover(now.x, now.y);
      return;
    }
    pointers.set(event.pointerId, now);
    moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (pointers.size === 1) {
      if (moved > SLIP) gestures.pan(now.x - before.x, now.y - before.y);
      return;
    }
    const [a, b] = [...pointers.values()];
    const apart = Math.hypot(a.x - b.x, a.y - b.y);
    gestures.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
    if (distance) gestures.zoom(apart / distance, (a.x + b.x) / 2, (a.y + b.y) / 2);
    distance = apart;
  });
  const end = (event: PointerEvent): void => {
    if (!pointers.delete(event.pointerId)) return;
    const { x, y } = place(event);
    if (event.type === "pointerup" && !pointers.size && moved <= SLIP) gestures.click(x, y);
    if (pointers.size) moved = Infinity;
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => gestures.leave());
  canvas.addEventListener("dblclick", (event) => {
    const { x, y } = place(event);
    gestures.open(x, y);
  });
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const { x, y } = place(event);
      const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 20 : 1;
      const turn = event.deltaY * unit;
      if (event.shiftKey) gestures.pan(-event.deltaX * unit, -turn);
      else if (event.altKey) gestures.stretch(Math.exp(-turn / 400), y);
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) gestures.pan(-event.deltaX * unit, 0);
      else gestures.zoom(Math.exp(-turn / (event.ctrlKey ? 100 : 320)), x, y);
    },
    { passive: false },
  );
}
