// Numbers and sentences as the page prints them.

const whole = new Intl.NumberFormat("en-US");

/** 12345 -> "12,345". */
export const count = (number) => whole.format(number);

/** 0.934 -> "93 %"; close to the ends one more digit, so that 99.7 % does not read as certain, nor 99.99 %. */
export function percent(share) {
  const value = 100 * share;
  const isNearAnEnd = (value > 99 && value < 100) || (value > 0 && value < 1);
  return `${isNearAnEnd ? Math.min(99.9, Math.max(0.1, value)).toFixed(1) : Math.round(value)} %`;
}

/** 1, "row" -> "1 row"; 2, "row" -> "2 rows". */
export function many(number, noun, plural = `${noun}s`) {
  return `${count(number)} ${number === 1 ? noun : plural}`;
}

/** A text cut to so many characters, with a sign that something is missing. */
export function shortened(text, length) {
  const characters = Array.from(text);
  return characters.length <= length ? text : `${characters.slice(0, length - 1).join("")}…`;
}

// Invisible signs of a cell could reorder or hide what stands beside them: shown as the boxes that Unicode has for them.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** A cell's text with control characters and direction overrides made visible. */
export function visible(text) {
  return String(text).replace(CONTROL, (sign) => {
    const code = sign.codePointAt(0);
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : "\u2426";
  });
}
