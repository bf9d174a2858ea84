// Which part of the plane is seen: a centre in the plane, and pixels (of the page) per unit.

const MARGIN = 1.08;
const MAX_ZOOM = 400;

export class Camera {
  constructor() {
    this.width = this.height = 1;
    this.fit();
  }

  get fitted() {
    return Math.min(this.width, this.height) / (2 * MARGIN);
  }

  get zoom() {
    return this.unit / this.fitted;
  }

  fit() {
    this.x = this.y = 0;
    this.unit = this.fitted;
  }

  resize(width, height) {
    const { zoom } = this;
    this.width = width;
    this.height = height;
    this.unit = this.fitted * (Number.isFinite(zoom) ? zoom : 1);
  }

  pan(dx, dy) {
    this.x -= dx / this.unit;
    this.y += dy / this.unit;
    this.x = Math.min(1.5, Math.max(-1.5, this.x));
    this.y = Math.min(1.5, Math.max(-1.5, this.y));
  }

  /** The point under the pointer stays where it is. */
  zoomAt(factor, sx, sy) {
    const [x, y] = this.toPlane(sx, sy);
    const lowest = 0.5 * this.fitted;
    this.unit = Math.min(MAX_ZOOM * this.fitted, Math.max(lowest, this.unit * factor));
    this.x = x - (sx - this.width / 2) / this.unit;
    this.y = y + (sy - this.height / 2) / this.unit;
  }

  toPlane(sx, sy) {
    return [this.x + (sx - this.width / 2) / this.unit, this.y - (sy - this.height / 2) / this.unit];
  }

  toScreen(x, y) {
    return [this.width / 2 + (x - this.x) * this.unit, this.height / 2 - (y - this.y) * this.unit];
  }

  /** What shaders multiply by: (position - centre) * scale is in -1..1. */
  get scale() {
    return [(2 * this.unit) / this.width, (2 * this.unit) / this.height];
  }

  copy() {
    const { x, y, unit, width, height } = this;
    return { x, y, unit, width, height, scale: this.scale };
  }
}
