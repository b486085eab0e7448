import { ArrowUp, Paperclip, Square, X } from "lucide-react";
import type { ClipboardEvent, KeyboardEvent } from "react";
import { useEffect, useEffectEvent, useLayoutEffect, useRef, useState } from "react";
import type { Params } from "skein/client";
import { errorText, useChange, useConnectionState, useGateway, useOffline } from "../connect/gateway.tsx";
import { userParam } from "../paths.ts";
import { isInputMethod, Kbd } from "../ui/keys.tsx";
import { oneLine } from "../ui/plain-text.ts";
import { useSessionPlace } from "../ui/session-head.tsx";
import {
  attachmentOf,
  composeMessage,
  imageUrl,
  longestPaste,
  newId,
  textAttachment,
} from "./attachments.ts";
import styles from "./composer.module.css";
import { useDraft, withoutSent } from "./drafts.ts";

type QueueMode = NonNullable<Params<"chat.send">["queueMode"]>;

interface ComposerProps {
  readonly isWorking: boolean;
  /** The runs that Stop ends. Queued messages stay queued. */
  readonly runIds: readonly string[];
  readonly initialText?: string;
  readonly onSent: () => void;
  /** Whether the reader has just opened the page and can start writing without clicking the field. */
  readonly takesFocus: () => boolean;
}

/**
 * The input field. Enter sends the message. While a turn is running, Enter steers the turn, and Alt+Enter queues the
 * message behind it.
 */
export function Composer({ isWorking, runIds, initialText = "", onSent, takesFocus }: ComposerProps) {
  const { client } = useGateway();
  const change = useChange();
  const offline = useOffline();
  const place = useSessionPlace();
  const [draft, changeDraft] = useDraft(initialText);
  const { text, attachments, sending } = draft;
  const setError = (problem: string | null) => changeDraft(() => ({ error: problem }));
  const [filesInWork, setFilesInWork] = useState(0);
  const form = useRef<HTMLFormElement>(null);
  const input = useRef<HTMLTextAreaElement>(null);
  const files = useRef<HTMLInputElement>(null);
  const isComposing = useRef(false);
  const isEmpty = text.trim() === "" && attachments.length === 0;
  const canSend = !isEmpty && sending === null && filesInWork === 0;

  const fitToText = () => {
    const area = input.current;
    // Resizing during a composition closes the candidate window of some input methods.
    if (area === null || isComposing.current) return;
    // The transcript must not become taller in the meantime, because that would scroll it.
    const { style, offsetHeight } = form.current as HTMLFormElement;
    style.minHeight = `${offsetHeight}px`;
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight + area.offsetHeight - area.clientHeight}px`;
    style.minHeight = "";
  };
  useLayoutEffect(fitToText, [text]);
  const landHere = useEffectEvent(() => {
    if (takesFocus()) input.current?.focus({ preventScroll: true });
  });
  useEffect(() => landHere(), []);

  const send = async (queueMode?: QueueMode) => {
    if (!canSend) return;
    const idempotencyKey = draft.sendKey ?? newId();
    const opened = new AbortController();
    changeDraft(() => ({ sendKey: idempotencyKey, sending: opened, error: null }));
    const { signal } = opened;
    const message = {
      sessionKey: place.key,
      ...userParam(place),
      ...composeMessage(text.trim(), attachments),
      idempotencyKey,
      ...(queueMode === undefined ? {} : { queueMode }),
    };
    try {
      // While offline, the client sends the message once the gateway is back.
      await client.call("chat.send", message, { signal });
      changeDraft((now) => withoutSent(now, draft));
      onSent();
    } catch (failure) {
      changeDraft(() => ({ sending: null, error: signal.aborted ? null : errorText(failure) }));
    } finally {
      // The button that was pressed is now disabled. If the user has moved the focus elsewhere, the focus stays there.
      const { activeElement } = document;
      if (activeElement === document.body || form.current?.contains(activeElement) === true)
        input.current?.focus();
    }
  };

  const stop = async () => {
    setError(null);
    try {
      for (const runId of runIds)
        await change("chat.abort", { sessionKey: place.key, runId, ...userParam(place) });
    } catch (failure) {
      setError(errorText(failure));
    }
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (isInputMethod(event) || event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    if (!isWorking) return void send();
    void send(event.altKey ? "followup" : "steer");
  };

  const attach = async (list: readonly File[]) => {
    setFilesInWork((count) => count + list.length);
    for (const file of list) {
      try {
        const attachment = await attachmentOf(file);
        changeDraft((now) => ({ attachments: [...now.attachments, attachment] }));
      } catch (failure) {
        setError(errorText(failure));
      } finally {
        setFilesInWork((count) => count - 1);
      }
    }
  };

  const onPaste = (event: ClipboardEvent) => {
    const pasted = [...event.clipboardData.files];
    const words = event.clipboardData.getData("text/plain");
    void attach(pasted);
    if (words.length > longestPaste) {
      event.preventDefault();
      const attachment = textAttachment("pasted.txt", words);
      changeDraft((now) => ({ attachments: [...now.attachments, attachment] }));
    } else if (pasted.length > 0) {
      // Spreadsheets copy cells both as text and as an image. File managers copy file names as text.
      const names = new Set(pasted.map(({ name }) => name));
      if (words.split(/\r?\n/).every((line) => line === "" || names.has(line))) event.preventDefault();
    }
  };

  // Handled anywhere on the page, because a file dropped outside the composer would replace the page.
  const onDrag = useEffectEvent((event: globalThis.DragEvent) => {
    if (event.dataTransfer?.types.includes("Files") !== true) return;
    event.preventDefault();
    if (event.type === "drop") void attach([...event.dataTransfer.files]);
  });
  useEffect(() => {
    const listen = (event: globalThis.DragEvent) => onDrag(event);
    addEventListener("dragover", listen);
    addEventListener("drop", listen);
    return () => {
      removeEventListener("dragover", listen);
      removeEventListener("drop", listen);
    };
  }, []);

  return (
    <form
      ref={form}
      className={styles.composer}
      onSubmit={(event) => {
        event.preventDefault();
        void send(isWorking ? "steer" : undefined);
      }}
    >
      {attachments.length > 0 && (
        <ul className={styles.attachments} aria-label="Attachments">
          {attachments.map((attachment) => (
            <li key={attachment.id}>
              {"image" in attachment.content && <img src={imageUrl(attachment.content.image)} alt="" />}
              {oneLine(attachment.name, 60)}
              <button
                type="button"
                aria-label={`Remove ${attachment.name}`}
                onClick={() =>
                  changeDraft((now) => ({
                    attachments: now.attachments.filter(({ id }) => id !== attachment.id),
                  }))
                }
              >
                <X size={13} />
              </button>
            </li>
          ))}
        </ul>
      )}
      <div className={styles.line}>
        <button
          type="button"
          className={styles.icon}
          aria-label="Attach a file"
          title="Attach a file"
          onClick={() => files.current?.click()}
        >
          <Paperclip size={16} />
        </button>
        <input
          ref={files}
          type="file"
          multiple
          hidden
          onChange={({ target }) => {
            void attach([...(target.files ?? [])]);
            // Allows the same file to be chosen again.
            target.value = "";
          }}
        />
        <textarea
          ref={input}
          rows={1}
          dir="auto"
          value={text}
          readOnly={sending !== null && offline !== null}
          aria-label="Message"
          placeholder={isWorking ? "Steer the current turn" : "Write a message"}
          onChange={({ target }) => changeDraft(() => ({ text: target.value }))}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
          onCompositionStart={() => {
            isComposing.current = true;
          }}
          onCompositionEnd={() => {
            isComposing.current = false;
            fitToText();
          }}
        />
        {isWorking && (
          <button
            type="button"
            className={styles.button}
            onClick={() => void send("followup")}
            disabled={!canSend}
          >
            Queue <Kbd keys="Alt+Enter" />
          </button>
        )}
        {(isWorking || runIds.length > 0) && (
          <button type="button" className={styles.button} onClick={() => void stop()} {...offline}>
            <Square size={12} aria-hidden /> Stop
          </button>
        )}
        <button type="submit" className={styles.send} disabled={!canSend}>
          <ArrowUp size={15} aria-hidden /> {isWorking ? "Steer" : "Send"} <Kbd keys="Enter" />
        </button>
      </div>
    </form>
  );
}

/**
 * What happened to the message. Shown above the approvals, because these lines appear on their own and would move
 * anything above them.
 */
export function ComposerNotices({ initialText }: Pick<ComposerProps, "initialText">) {
  const [{ sending, error }, changeDraft] = useDraft(initialText ?? "");
  const isOffline = useConnectionState() !== "open";
  return (
    <>
      {error !== null && (
        <p className={styles.error} role="alert">
          {error}{" "}
          <button type="button" onClick={() => changeDraft(() => ({ error: null }))} aria-label="Dismiss">
            <X size={13} />
          </button>
        </p>
      )}
      {sending !== null && isOffline && (
        <p className={styles.unsent} role="status">
          Not sent yet: the gateway is offline. The message is sent when the gateway is back.{" "}
          <button type="button" onClick={() => sending.abort()}>
            Do not send
          </button>
        </p>
      )}
    </>
  );
}

/**
 * Whether the composer of a page that has just been opened may take the focus. It may not on a touch screen, where it
 * would open the keyboard, or after the reader has begun to do something else. Screen readers move the focus without a
 * key press, so the position of the focus is checked too. Before the page opens, the focus is outside the page.
 */
export function useLanding(isWanted: boolean): () => boolean {
  const hasActed = useRef(false);
  useEffect(() => {
    const watching = new AbortController();
    const note = () => {
      hasActed.current = true;
    };
    for (const event of ["keydown", "pointerdown"])
      addEventListener(event, note, { signal: watching.signal, capture: true });
    return () => watching.abort();
  }, []);
  return () =>
    isWanted &&
    !hasActed.current &&
    document.activeElement?.matches("#content *") !== true &&
    !matchMedia("(pointer: coarse)").matches;
}
