import type { FormEvent } from "react";
import buttons from "../ui/button.module.css";
import type { Access } from "./access.ts";
import type { SignedOut } from "./sign-in.ts";
import { identityText } from "./sign-in.ts";
import styles from "./signed-out-page.module.css";
import { storeToken } from "./token-storage.ts";

const titles: Record<SignedOut, string> = {
  "no-token": "This browser is not signed in.",
  used: "This link was used before, or is older than ten minutes.",
  unreachable: "The gateway is not responding.",
  invalid: "This token is not valid. It may be mistyped, revoked or expired.",
  ended: "You are signed out: your token was revoked or has expired.",
  left: "You have signed out.",
};

/** What to do without a token: the commands that print a new link, and a field for a token. */
export function SignedOutPage({ why, keepsLink, retry }: Extract<Access, { phase: "signed-out" }>) {
  return (
    <main className={styles.page}>
      <h1>{titles[why]}</h1>
      {why === "unreachable" ? (
        <>
          <p>
            Start it with <code>skein start</code>. This page retries automatically.
          </p>
          {keepsLink && (
            <p role="status">
              Your link is not used yet. It signs you in as soon as the gateway responds. Keep this tab open
              until then, and do not reload it.
            </p>
          )}
          <p>
            <button type="button" className={buttons.button} onClick={retry}>
              Try now
            </button>
          </p>
        </>
      ) : (
        <>
          <p>On the gateway’s machine, print a new link and open it here:</p>
          <pre>
            <code>skein link</code>
          </pre>
          <p>
            In a clone, run <code>npm start</code> again. While its gateway is running, it prints a new link.
          </p>
          <TokenForm onStored={retry} />
        </>
      )}
    </main>
  );
}

/** A link never replaces another user's token without confirmation. */
export function OtherUserPage({ current, offered, answer }: Extract<Access, { phase: "asking" }>) {
  return (
    <main className={styles.page}>
      <h1>You are signed in {identityText(current)}.</h1>
      <p>This link signs in {identityText(offered)}. If you stay, the link cannot be used again.</p>
      <p className={styles.choices}>
        <button type="button" className={buttons.button} onClick={() => answer(false)} autoFocus>
          Stay signed in {identityText(current)}
        </button>
        <button type="button" className={buttons.button} onClick={() => answer(true)}>
          Sign in {identityText(offered)}
        </button>
      </p>
    </main>
  );
}

function TokenForm({ onStored }: { readonly onStored: () => void }) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const token = String(new FormData(event.currentTarget).get("token")).trim();
    if (token === "") return;
    storeToken(token);
    onStored();
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      <label>
        Or use a token: <input name="token" type="password" autoComplete="off" required maxLength={512} />
      </label>
      <button type="submit" className={buttons.button}>
        Sign in
      </button>
    </form>
  );
}
