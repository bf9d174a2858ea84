// Programs of the map. Colours come ready from a table (class, confidence) -> colour, so that a view is a table.

const POINT_VERTEX = `#version 300 es
layout(location = 0) in vec2 before;    // where the row stood on the map before this one
layout(location = 1) in vec2 now;
layout(location = 2) in uvec2 look;     // class, confidence
uniform float progress;                 // from before to now
uniform vec2 centre, scale;
uniform float size;
uniform sampler2D table;
flat out vec3 colour;
void main() {
  gl_Position = vec4((mix(before, now, progress) - centre) * scale, 0.0, 1.0);
  gl_PointSize = size;
  colour = texelFetch(table, ivec2(int(look.y) >> 2, int(look.x)), 0).rgb;
}`;

// Squares of a pixel or two are much cheaper than discs in software, and look the same.
const SQUARE_FRAGMENT = `#version 300 es
precision mediump float;
flat in vec3 colour;
out vec4 pixel;
void main() { pixel = vec4(colour, 1.0); }`;

const DISC_FRAGMENT = `#version 300 es
precision highp float;
uniform float size;
uniform vec3 rim;
flat in vec3 colour;
out vec4 pixel;
void main() {
  float r = length(gl_PointCoord - 0.5) * size;
  float radius = 0.5 * size - 0.5;
  float inside = clamp(radius + 0.5 - r, 0.0, 1.0);
  if (inside <= 0.0) discard;
  float edge = clamp(r - radius + 1.2, 0.0, 1.0) * 0.55 * clamp(0.3 * (size - 4.0), 0.0, 1.0); // large ones are set apart
  pixel = vec4(mix(colour, rim, edge) * inside, inside);
}`;

// Marks: given labels, the selection, suggestions. A fill and a ring around it.
const MARK_VERTEX = `#version 300 es
layout(location = 0) in vec2 before;
layout(location = 1) in vec2 now;
layout(location = 2) in vec4 fill;
layout(location = 3) in vec4 ring;
layout(location = 4) in vec2 shape;     // diameter, width of the ring
uniform float progress, ratio;
uniform vec2 centre, scale;
flat out vec4 inner;
flat out vec4 outer;
flat out vec2 form;
void main() {
  gl_Position = vec4((mix(before, now, progress) - centre) * scale, 0.0, 1.0);
  form = shape * ratio;
  gl_PointSize = form.x + 2.0;
  inner = fill;
  outer = ring;
}`;

const MARK_FRAGMENT = `#version 300 es
precision mediump float;
flat in vec4 inner;
flat in vec4 outer;
flat in vec2 form;
out vec4 pixel;
void main() {
  float r = length(gl_PointCoord - 0.5) * (form.x + 2.0);
  float radius = 0.5 * form.x;
  float inside = clamp(radius + 0.5 - r, 0.0, 1.0);
  if (inside <= 0.0) discard;
  float onRing = clamp(r - (radius - form.y) + 0.5, 0.0, 1.0);
  vec4 colour = mix(inner, outer, onRing);
  pixel = vec4(colour.rgb * colour.a, colour.a) * inside;
}`;

// The picture of a moment ago, moved with the camera: what is seen while the hand drags.
const PICTURE_VERTEX = `#version 300 es
uniform vec2 offset, stretch;
out vec2 at;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  at = corner;
  gl_Position = vec4((corner * 2.0 - 1.0) * stretch + offset, 0.0, 1.0);
}`;

const PICTURE_FRAGMENT = `#version 300 es
precision mediump float;
uniform sampler2D picture;
in vec2 at;
out vec4 pixel;
void main() { pixel = vec4(texture(picture, at).rgb, 1.0); }`;

export function programs(gl) {
  return {
    squares: program(gl, POINT_VERTEX, SQUARE_FRAGMENT),
    discs: program(gl, POINT_VERTEX, DISC_FRAGMENT),
    marks: program(gl, MARK_VERTEX, MARK_FRAGMENT),
    picture: program(gl, PICTURE_VERTEX, PICTURE_FRAGMENT),
  };
}

/** A linked program with its uniforms: {use(), at: {name: location}}. */
function program(gl, vertex, fragment) {
  const made = gl.createProgram();
  for (const [type, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS) && !gl.isContextLost()) throw new Error(gl.getProgramInfoLog(made));
  const at = {};
  for (let i = 0; i < (gl.getProgramParameter(made, gl.ACTIVE_UNIFORMS) ?? 0); i++) {
    const { name } = gl.getActiveUniform(made, i);
    at[name] = gl.getUniformLocation(made, name);
  }
  return { made, at };
}
