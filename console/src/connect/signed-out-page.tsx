import type { FormEvent } from "react";
import buttons from "../ui/button.module.css";
import type { SignedOut } from "./sign-in.ts";
import styles from "./signed-out-page.module.css";
import { storeToken } from "./token-storage.ts";

const titles: Record<SignedOut, string> = {
  "no-token": "This browser is not signed in.",
  used: "This link was used before, or is older than ten minutes.",
  unreachable: "The gateway is not responding.",
  ended: "You are signed out: your token was revoked or has expired.",
};

/** What to do without a token: the commands that print a new link, and a field for a token. */
export function SignedOutPage({ why }: { readonly why: SignedOut }) {
  return (
    <main className={styles.page}>
      <h1>{titles[why]}</h1>
      {why === "unreachable" ? (
        <p>
          Start it with <code>skein start</code>, then{" "}
          <button type="button" onClick={() => location.reload()}>
            try again
          </button>
          .
        </p>
      ) : (
        <>
          <p>On the gateway’s machine, print a new link and open it here:</p>
          <pre>
            <code>skein link</code>
          </pre>
          <p>
            In a clone, run <code>npm start</code> again: while its gateway is running, it prints a new link.
          </p>
          <TokenForm />
        </>
      )}
    </main>
  );
}

function TokenForm() {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const token = String(new FormData(event.currentTarget).get("token")).trim();
    if (token === "") return;
    storeToken(token);
    location.reload();
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
