import type { SignedOut } from "./sign-in.ts";
import styles from "./signed-out-page.module.css";

const titles: Record<SignedOut, string> = {
  "no-token": "This browser is not signed in.",
  used: "This link was used before, or is older than ten minutes.",
  unreachable: "The gateway does not answer.",
  ended: "Your token has ended: it was revoked, or it has expired.",
};

/** What to do without a token: the command that prints a new link. */
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
        </>
      )}
    </main>
  );
}
