// How large a point is drawn: few rows large, a million a pixel each, larger when zoomed in.

export function pointSize(n, camera, ratio) {
  const side = Math.min(camera.width, camera.height);
  const room = Math.sqrt((0.25 * side * side) / Math.max(1, n));
  const largest = 8 * Math.min(1.8, Math.max(0.8, camera.zoom ** 0.3));
  const pixels = Math.min(largest, Math.max(0.5, room * camera.zoom ** 0.75)) * ratio;
  return pixels < 3 ? Math.ceil(pixels - 0.01) : pixels; // squares below that: whole pixels
}
