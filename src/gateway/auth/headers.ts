/** The headers that go with every answer of its kind. Nothing here allows another origin anything: there is no CORS. */

export type FixedHeaders = Readonly<Record<string, string>>;

/** No script but the files that we serve; no frames, forms or plug-ins. Images of sessions are `blob:` or `data:`. */
const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "object-src 'none'",
].join("; ");

/** For what is no page, whatever a browser takes it for. */
const dataPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox";

const everywhere: FixedHeaders = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
};

/** The pages of the console: asked for again each time, so that a new version is seen. */
export const pageHeaders: FixedHeaders = {
  ...everywhere,
  "content-security-policy": pagePolicy,
  "cache-control": "no-cache",
};

/** Files of the console whose name has the hash of what is in them. */
export const assetHeaders: FixedHeaders = {
  ...everywhere,
  "content-security-policy": pagePolicy,
  "cache-control": "public, max-age=31536000, immutable",
};

/** Answers of methods, and refusals. */
export const apiHeaders: FixedHeaders = {
  ...everywhere,
  "content-security-policy": dataPolicy,
  "cache-control": "no-store",
};

/** Blobs and exports: bytes that somebody else wrote. They are saved, never shown as a page of ours. */
export const downloadHeaders: FixedHeaders = { ...apiHeaders, "content-disposition": "attachment" };
