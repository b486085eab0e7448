/** Returns a stable hash with 16 hexadecimal digits. Not secure: collisions can be constructed. */
export function shortHash(text: string): string {
  let left = 0x9e3779b9;
  let right = 0x85ebca6b;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    left = Math.imul(left ^ unit, 0x01000193);
    right = Math.imul((right << 13) | (right >>> 19), 5) + Math.imul(unit + at, 0xcc9e2d51);
  }
  return hex(mixed(left ^ text.length)) + hex(mixed(right ^ left));
}

/** Mixes the bits so that each input bit affects all output bits. */
function mixed(value: number): number {
  let bits = value;
  bits = Math.imul(bits ^ (bits >>> 16), 0x21f0aaad);
  bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97);
  return bits ^ (bits >>> 15);
}

function hex(value: number): string {
  return (value >>> 0).toString(16).padStart(8, "0");
}
