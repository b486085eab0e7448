import { Pencil, X } from "lucide-react";
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { errorText, useChange, useMay, useOffline } from "../connect/gateway.tsx";
import { useSessionRow } from "../frame.tsx";
import { rowName } from "../live/session-row.ts";
import type { PendingInput } from "../live/transcript.ts";
import type { SessionPlace } from "../paths.ts";
import { sessionPath, userParam } from "../paths.ts";
import { isInputMethod } from "../ui/keys.tsx";
import { previewLine } from "../ui/preview.ts";
import { useSessionPlace } from "../ui/session-head.tsx";
import type { QueuedEdit } from "./drafts.ts";
import { useDraft, withLostEdits } from "./drafts.ts";
import styles from "./pending-inputs.module.css";
import { contentText, isResult, kindOfSender, quotedText, sourceOf, writtenText } from "./rows.ts";

interface PendingInputsProps {
  readonly pending: readonly PendingInput[];
  /** The composer's initial text. If an edit comes too late, the composer receives its text. */
  readonly initialText: string;
}

/** Accepted messages that are waiting for their turn. Until the turn starts, each can be edited or canceled. */
export function PendingInputs({ pending, initialText }: PendingInputsProps) {
  const [draft, changeDraft] = useDraft(initialText);
  const waiting = pending.filter(({ state }) => state === "queued");
  const queued = waiting.map(({ runId }) => runId);
  const lost = withLostEdits(draft, queued);
  useEffect(() => {
    if (lost !== null) changeDraft(() => lost);
  });
  if (waiting.length === 0) return null;
  return (
    <ol className={styles.list} aria-label="Queued messages">
      {waiting.map((input) => (
        <PendingRow
          key={input.runId}
          input={input}
          edit={draft.edits[input.runId] ?? null}
          changeEdit={(edit) =>
            changeDraft(({ edits: { [input.runId]: _, ...others } }) => ({
              edits: edit === null ? others : { ...others, [input.runId]: edit },
            }))
          }
        />
      ))}
    </ol>
  );
}

interface PendingRowProps {
  readonly input: PendingInput;
  readonly edit: QueuedEdit | null;
  /** `null` ends the edit. */
  readonly changeEdit: (edit: QueuedEdit | null) => void;
}

function PendingRow({ input, edit, changeEdit }: PendingRowProps) {
  const change = useChange();
  const offline = useOffline();
  const place = useSessionPlace();
  const mayEdit = useMay("runs.edit");
  const mayCancel = useMay("runs.abort");
  const [error, setError] = useState<string | null>(null);
  const written = writtenText(input.content);
  const text = contentText(input.content);
  const source = sourceOf(input.provenance, place);
  // The gateway allows edits only to what a person wrote.
  const isEditable = mayEdit && edit === null && kindOfSender(input.provenance) === "user";
  const isChanged = edit !== null && !edit.isSaving && written !== edit.base && written !== edit.text;
  const whose = { runId: input.runId, ...userParam(place) };
  const attempt = async (act: () => Promise<unknown>) => {
    setError(null);
    try {
      await act();
      changeEdit(null);
    } catch (failure) {
      setError(errorText(failure));
      if (edit !== null) changeEdit({ ...edit, isSaving: false });
    }
  };
  const cancel = () => {
    changeEdit(null);
    void attempt(() => change("runs.abort", { ...whose, reason: "Canceled in the console." }));
  };
  const save = ({ text, base }: QueuedEdit) => {
    changeEdit({ text, base, isSaving: true });
    void attempt(() => change("runs.edit", { ...whose, message: text, expectedText: base }));
  };
  return (
    <li className={styles.row}>
      <span className={styles.state}>queued</span>
      {edit === null ? (
        <span className={styles.text} dir="auto">
          {source !== null && <QueuedSource source={source} isResult={isResult(input.provenance)} />}
          {previewLine(source === null ? text : quotedText(text), 300)}
        </span>
      ) : (
        <textarea
          className={styles.text}
          dir="auto"
          autoFocus
          value={edit.text}
          aria-label="Queued message"
          onChange={({ target }) => changeEdit({ ...edit, text: target.value })}
          onKeyDown={(event) => {
            if (isInputMethod(event)) return;
            if (event.key === "Escape") changeEdit(null);
            if (event.key !== "Enter" || event.shiftKey) return;
            event.preventDefault();
            if (!isChanged && offline === null) save(edit);
          }}
        />
      )}
      {error !== null && !isChanged && <span role="alert">{error}</span>}
      {isEditable && input.isPartial === true && (
        <span className={styles.state}>cannot be edited here: part of it is not shown</span>
      )}
      {isEditable && input.isPartial !== true && (
        <button
          type="button"
          aria-label="Edit the queued message"
          data-takes-focus
          onClick={() => changeEdit({ text: written, base: written, isSaving: false })}
        >
          <Pencil size={13} />
        </button>
      )}
      {edit !== null && !isChanged && (
        <button type="button" onClick={() => save(edit)} {...offline}>
          Save
        </button>
      )}
      {mayCancel && (
        <button type="button" aria-label="Cancel the queued message" onClick={cancel} {...offline}>
          <X size={13} />
        </button>
      )}
      {isChanged && (
        <div className={styles.conflict} role="alert">
          <p>Someone else has changed this message. It now says:</p>
          <blockquote dir="auto">{written}</blockquote>
          <button type="button" onClick={() => save({ ...edit, base: written })} {...offline}>
            Save mine instead
          </button>
          <button type="button" onClick={() => changeEdit(null)}>
            Keep theirs
          </button>
        </div>
      )}
    </li>
  );
}

function QueuedSource({
  source,
  isResult,
}: {
  readonly source: SessionPlace;
  /** Whether the other session reports its result. Otherwise, it sent a message. */
  readonly isResult: boolean;
}) {
  const row = useSessionRow(source);
  return (
    <>
      {isResult ? "Result of" : "Message from"}{" "}
      <Link href={sessionPath(source)}>
        <bdi>{rowName(row ?? source)}</bdi>
      </Link>
      :{" "}
    </>
  );
}
