import { encodeQr } from "./qr-code.ts";

/** A QR code, dark on white in both themes, because some readers cannot read it inverted. `null`: the text is too long. */
export function QrImage({ text, label }: { readonly text: string; readonly label: string }) {
  const rows = encodeQr(text);
  if (rows === null) return null;
  const side = rows.length + 8;
  const path = rows
    .flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x + 4} ${y + 4}h1v1h-1z`] : [])))
    .join("");
  return (
    <svg
      viewBox={`0 0 ${side} ${side}`}
      width={side * 4}
      height={side * 4}
      role="img"
      aria-label={label}
      shapeRendering="crispEdges"
    >
      <rect width={side} height={side} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
