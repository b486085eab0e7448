/** Whether a text is base64 with its padding, and not empty. Servers refuse signatures that are not. */
export function isBase64(text: string): boolean {
  return text.length > 0 && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text);
}
