import type { FormEvent } from "react";
import { useState } from "react";
import type { Params } from "skein/client";
import { errorText, useChange, useGateway, useOffline } from "../connect/gateway.tsx";
import buttons from "../ui/button.module.css";
import { Choice } from "../ui/choice.tsx";
import { CopyButton } from "../ui/code-block.tsx";
import { Modal } from "../ui/modal.tsx";
import styles from "./create-token.module.css";

type Scope = Params<"tokens.create">["scopes"][number];

const scopeTexts: Record<Scope, string> = {
  read: "read sessions and follow events",
  write: "send messages and answer approvals",
  tools: "call tools as an agent would",
  admin: "change and delete sessions, see secrets",
};
const dayMs = 86_400_000;

/** The secret is shown once and is not stored anywhere. */
export function CreateToken({
  isOpen,
  latest,
  onClose,
  onCreated,
}: {
  readonly isOpen: boolean;
  /** When this browser's own token expires. No token created with it is valid for longer. */
  readonly latest: number | null;
  readonly onClose: () => void;
  readonly onCreated: () => void;
}) {
  return (
    <Modal title="Create a token" isOpen={isOpen} onClose={onClose}>
      <NewToken latest={latest} onCreated={onCreated} />
    </Modal>
  );
}

/** The form, then the secret. This component is unmounted when the dialog closes, which discards the secret. */
function NewToken({ latest, onCreated }: { readonly latest: number | null; readonly onCreated: () => void }) {
  const [secret, setSecret] = useState<string | null>(null);
  if (secret === null)
    return (
      <TokenForm
        latest={latest}
        onCreated={(token) => {
          setSecret(token);
          onCreated();
        }}
      />
    );
  return (
    <div className={styles.form}>
      <p>Copy it now. It is not shown again.</p>
      <p className={styles.secret}>
        <code>{secret}</code>
        <CopyButton text={secret} label="Copy the token" autoFocus />
      </p>
    </div>
  );
}

/**
 * Returns the labels of the lifetimes, keyed by the number of days. `own` lasts until this browser's token expires, and
 * an empty key lasts until the token is revoked.
 */
function lifetimesUntil(latest: number | null): Readonly<Record<string, string>> {
  if (latest === null) return { "1": "1 day", "30": "30 days", "365": "1 year", "": "until revoked" };
  const fitting = Object.entries({ "1": "1 day", "7": "7 days" }).filter(
    ([days]) => Date.now() + Number(days) * dayMs < latest,
  );
  return { ...Object.fromEntries(fitting), own: "as long as this browser's token" };
}

function TokenForm({
  latest,
  onCreated,
}: {
  readonly latest: number | null;
  readonly onCreated: (token: string) => void;
}) {
  const { client } = useGateway();
  const change = useChange();
  const offline = useOffline();
  const [label, setLabel] = useState("");
  const [scopes, setScopes] = useState<readonly Scope[]>(["read"]);
  const [audience, setAudience] = useState("unnamed");
  const [userId, setUserId] = useState("");
  const [days, setDays] = useState(latest === null ? "30" : "own");
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  // A token can grant only the permissions that it has.
  const grantable = (Object.keys(scopeTexts) as Scope[]).filter((scope) =>
    client.hello.scopes.includes(scope),
  );
  const toggle = (scope: Scope) =>
    setScopes((before) =>
      before.includes(scope) ? before.filter((each) => each !== scope) : [...before, scope],
    );
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setIsBusy(true);
    setError(null);
    try {
      const { token } = await change("tokens.create", {
        scopes: grantable.filter((scope) => scopes.includes(scope)),
        ...(label.trim() === "" ? {} : { label: label.trim() }),
        ...(audience === "named" ? { userId: userId.trim() } : {}),
        ...(audience === "all" ? { allUsers: true } : {}),
        ...(days === "own" && latest !== null ? { expiresAt: latest } : {}),
        ...(Number(days) > 0 ? { expiresAt: Date.now() + Number(days) * dayMs } : {}),
      });
      onCreated(token);
    } catch (failure) {
      setError(errorText(failure));
      setIsBusy(false);
    }
  };
  const isComplete = scopes.length > 0 && (audience !== "named" || userId.trim() !== "");
  return (
    <form className={styles.form} onSubmit={(event) => void submit(event)}>
      <label className={styles.field}>
        <span>Name</span>
        <input
          value={label}
          maxLength={512}
          placeholder="the program that will use it"
          onChange={({ target }) => setLabel(target.value)}
        />
      </label>
      <fieldset className={styles.field}>
        <legend>May</legend>
        {grantable.map((scope) => (
          <label key={scope} className={styles.scope}>
            <input type="checkbox" checked={scopes.includes(scope)} onChange={() => toggle(scope)} />
            <b>{scope}</b> {scopeTexts[scope]}
          </label>
        ))}
      </fieldset>
      <div className={styles.line}>
        <Choice
          label="For"
          value={audience}
          options={{ unnamed: "the default user", named: "one user", all: "all users" }}
          onChange={setAudience}
        />
        {audience === "named" && (
          <input
            aria-label="User"
            placeholder="user"
            value={userId}
            maxLength={256}
            onChange={({ target }) => setUserId(target.value)}
          />
        )}
        <Choice label="Valid" value={days} options={lifetimesUntil(latest)} onChange={setDays} />
      </div>
      {audience === "all" && !scopes.includes("admin") && (
        <p className={styles.hint}>A token for all users needs the scope admin.</p>
      )}
      {error !== null && (
        <p className={styles.error} role="alert">
          {error}
        </p>
      )}
      <button
        type="submit"
        className={buttons.button}
        data-look="main"
        disabled={!isComplete || isBusy}
        {...offline}
      >
        Create
      </button>
    </form>
  );
}
