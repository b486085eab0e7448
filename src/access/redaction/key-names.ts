/** What stands under a name: how much its value must look like a secret to be one. */
export type KeyKind = "password" | "secret" | "authorization" | "cookie" | "setCookie";

const passwords = new Set(
  "password passwd pwd passphrase pass passcode userpassword dbpassword rootpassword secretkeybase".split(
    " ",
  ),
);
const secrets = new Set(
  (
    "secret token apikey accesskey secretkey privatekey authkey authtoken accesstoken refreshtoken idtoken " +
    "sessiontoken clientsecret appsecret accountkey sharedaccesskey credential credentials apitoken pat sig " +
    "signature bearer secretaccesskey securitytoken subscriptionkey signingkey encryptionkey masterkey webhooksecret"
  ).split(" "),
);
/** What comes before "key" in names of secrets; `sessionKey` and `primaryKey` are none. */
const secretKeys = new Set(
  (
    "api access secret private auth account signing encryption master subscription service storage shared client " +
    "app admin license webhook deploy write live functions host"
  ).split(" "),
);
/** What comes before "token" in names of things that are no secrets. */
const openTokens = new Set(
  "page next continuation sync cursor max min num total stop eos bos pad unk special input output per cached".split(
    " ",
  ),
);
/** How all of them end: most names are told by that alone. */
const endings = new Set(
  [...passwords, ...secrets, "cookie", "authorization", "auth", "key", "base"].map((word) => word.slice(-3)),
);

/**
 * What kind of secret a name announces: `OPENAI_API_KEY`, `clientSecret`, `--db-password`, `X-Auth-Token`. `null`: none.
 */
export function keyKind(name: string): KeyKind | null {
  if (!endings.has(name.slice(-3).toLowerCase())) return null;
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "");
  const last = words.at(-1) ?? "";
  const before = words.at(-2) ?? "";
  if (last === "cookie") return before === "set" ? "setCookie" : "cookie";
  if (last === "authorization" || (last === "auth" && before === "proxy")) return "authorization";
  if (last === "auth" && (words.length === 1 || before === "")) return "secret";
  if (passwords.has(last)) return last === "pass" && !isBarePass(words) ? null : "password";
  if (last === "token" && openTokens.has(before)) return null;
  if (last === "key") return isSecretKey(name, before) ? "secret" : null;
  if (last === "base" && before === "key") return "secret";
  return secrets.has(last) ? "secret" : null;
}

/** `DB_PASS` and `pass`, not `first pass` or `bypass`. */
function isBarePass(words: readonly string[]): boolean {
  return words.length <= 3;
}

/** Names of things that are looked up by, in capitals too: `SESSION_KEY`, `CACHE_KEY`. */
const openKeys = new Set(
  "session public primary foreign partition sort cache hash object row shard group index lookup idempotency publishable routing map dedupe unique dict".split(
    " ",
  ),
);

function isSecretKey(name: string, before: string): boolean {
  if (secretKeys.has(before)) return true;
  return before !== "" && /^[A-Z0-9_]+$/.test(name) && !openKeys.has(before);
}
