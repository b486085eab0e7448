import { createHash, randomBytes } from "node:crypto";

/** New ids of 24 letters and digits; no two twins give the same. */
export function idSource(): () => string {
  const seed = randomBytes(16).toString("hex");
  let count = 0;
  return () => {
    count += 1;
    const hash = createHash("sha256").update(`${seed}${count}`).digest("base64url");
    return hash.replaceAll("-", "a").replaceAll("_", "b").slice(0, 24);
  };
}
