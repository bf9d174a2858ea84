// A framebuffer that is kept between frames: the map drawn so far, and the camera it was drawn with.

export class Picture {
  constructor(gl) {
    this.gl = gl;
    this.texture = gl.createTexture();
    this.buffer = gl.createFramebuffer();
    this.camera = null;
    this.width = this.height = 0;
  }

  resize(width, height) {
    if (width === this.width && height === this.height) return;
    const { gl } = this;
    Object.assign(this, { width, height, camera: null });
    gl.bindTexture(gl.TEXTURE_2D, this.texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, width, height, 0, gl.RGBA, gl.UNSIGNED_BYTE, null);
    for (const [name, value] of [["MIN_FILTER", gl.LINEAR], ["MAG_FILTER", gl.LINEAR], ["WRAP_S", gl.CLAMP_TO_EDGE], ["WRAP_T", gl.CLAMP_TO_EDGE]]) {
      gl.texParameteri(gl.TEXTURE_2D, gl[`TEXTURE_${name}`], value);
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.buffer);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, this.texture, 0);
  }

  /** Waits until everything is drawn: reading a pixel is the only way that every driver honours. */
  finish() {
    const { gl } = this;
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.buffer);
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
  }

  pixels() {
    const { gl } = this;
    const bytes = new Uint8Array(4 * this.width * this.height);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.buffer);
    gl.readPixels(0, 0, this.width, this.height, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
    return bytes;
  }
}
