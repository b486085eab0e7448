import { Pencil, X } from "lucide-react";
import { useState } from "react";
import { errorText, useGateway, useMay } from "../connect/gateway.tsx";
import type { PendingInput } from "../live/transcript.ts";
import { oneLine } from "../ui/plain-text.ts";
import styles from "./pending-inputs.module.css";
import { contentText } from "./rows.ts";
import { useSessionPlace } from "./session-place.ts";

/** Accepted messages that wait for their turn. Until it begins, each can be changed or taken back. */
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
  const { userId } = useSessionPlace();
  const mayChange = useMay("runs.edit");
  const [draft, setDraft] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const text = contentText(input.content);
  const whose = { runId: input.runId, ...(userId === undefined ? {} : { userId }) };
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
  const save = () => attempt(() => client.call("runs.edit", { ...whose, message: draft ?? text }));
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
            if (event.key === "Escape") setDraft(null);
            if (
              event.key !== "Enter" ||
              event.shiftKey ||
              event.nativeEvent.isComposing ||
              event.keyCode === 229
            )
              return;
            event.preventDefault();
            void save();
          }}
        />
      )}
      {error !== null && <span role="alert">{error}</span>}
      {mayChange && draft === null && (
        <button type="button" aria-label="Edit the queued message" onClick={() => setDraft(text)}>
          <Pencil size={13} />
        </button>
      )}
      {draft !== null && (
        <button type="button" onClick={() => void save()}>
          Save
        </button>
      )}
      <button type="button" aria-label="Cancel the queued message" onClick={() => void cancel()}>
        <X size={13} />
      </button>
    </li>
  );
}
