/** The bytes of base64 without a slip: right alphabet, right padding, nothing between. `null`: it is none. */
export function decodeBase64(text: string): Uint8Array | null {
  if (text.length % 4 !== 0 || text.includes("-") || text.includes("_")) return null;
  return wholly(text, text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0);
}

/** The same in either alphabet and with or without padding, as the JSON form of protocol buffers has bytes. */
export function decodeProtoBytes(text: string): Uint8Array | null {
  const bare = text.replace(/={1,2}$/, "");
  return bare.length % 4 === 1 ? null : wholly(bare, 0);
}

/** Node passes over what is no base64, so that fewer bytes come out than the text has room for. */
function wholly(text: string, padding: number): Uint8Array | null {
  const bytes = Buffer.from(text, "base64");
  return bytes.length === Math.floor((text.length * 3) / 4) - padding ? bytes : null;
}
