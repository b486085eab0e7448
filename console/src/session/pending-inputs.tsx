import { Pencil, X } from "lucide-react";
import { useState } from "react";
import { errorText, useGateway, useMay } from "../connect/gateway.tsx";
import type { PendingInput } from "../live/transcript.ts";
import { userParam } from "../paths.ts";
import { isInputMethod } from "../ui/keys.tsx";
import { oneLine } from "../ui/plain-text.ts";
import { useSessionPlace } from "../ui/session-head.tsx";
import styles from "./pending-inputs.module.css";
import { contentText, writtenText } from "./rows.ts";

/** Accepted messages that are waiting for their turn. Until the turn starts, each can be edited or canceled. */
export function PendingInputs({ pending }: { readonly pending: readonly PendingInput[] }) {
  const waiting = pending.filter(({ state }) => state === "queued");
  if (waiting.length === 0) return null;
  return (
    <ol className={styles.list} aria-label="Queued messages">
      {waiting.map((input) => (
        <PendingRow key={input.runId} input={input} />
      ))}
    </ol>
  );
}

function PendingRow({ input }: { readonly input: PendingInput }) {
  const { client } = useGateway();
  const place = useSessionPlace();
  const mayEdit = useMay("runs.edit");
  const mayCancel = useMay("runs.abort");
  const [draft, setDraft] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const text = contentText(input.content);
  const whose = { runId: input.runId, ...userParam(place) };
  const attempt = async (act: () => Promise<unknown>) => {
    try {
      await act();
      setDraft(null);
      setError(null);
    } catch (failure) {
      setError(errorText(failure));
    }
  };
  const cancel = () =>
    attempt(() => client.call("runs.abort", { ...whose, reason: "Canceled in the console." }));
  const save = (message: string) => attempt(() => client.call("runs.edit", { ...whose, message }));
  return (
    <li className={styles.row}>
      <span className={styles.state}>queued</span>
      {draft === null ? (
        <span className={styles.text}>{oneLine(text, 300)}</span>
      ) : (
        <textarea
          className={styles.text}
          autoFocus
          value={draft}
          aria-label="Queued message"
          onChange={({ target }) => setDraft(target.value)}
          onKeyDown={(event) => {
            if (isInputMethod(event)) return;
            if (event.key === "Escape") setDraft(null);
            if (event.key !== "Enter" || event.shiftKey) return;
            event.preventDefault();
            void save(draft);
          }}
        />
      )}
      {error !== null && <span role="alert">{error}</span>}
      {mayEdit && draft === null && input.isPartial === true && (
        <span className={styles.state}>cannot be edited here: part of it is not shown</span>
      )}
      {mayEdit && draft === null && input.isPartial !== true && (
        <button
          type="button"
          aria-label="Edit the queued message"
          data-takes-focus
          onClick={() => setDraft(writtenText(input.content))}
        >
          <Pencil size={13} />
        </button>
      )}
      {draft !== null && (
        <button type="button" onClick={() => void save(draft)}>
          Save
        </button>
      )}
      {mayCancel && (
        <button type="button" aria-label="Cancel the queued message" onClick={() => void cancel()}>
          <X size={13} />
        </button>
      )}
    </li>
  );
}
