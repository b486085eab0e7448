import { ArrowUp, Paperclip, Square, X } from "lucide-react";
import type { ClipboardEvent, DragEvent, KeyboardEvent } from "react";
import { useLayoutEffect, useRef, useState } from "react";
import type { Params } from "skein/client";
import { errorText, useGateway } from "../connect/gateway.tsx";
import { Kbd } from "../ui/kbd.tsx";
import type { Attachment } from "./attachments.ts";
import { attachmentOf, composeMessage, longestPaste, newId, textAttachment } from "./attachments.ts";
import styles from "./composer.module.css";
import { useSessionPlace } from "./session-place.ts";

type QueueMode = NonNullable<Params<"chat.send">["queueMode"]>;

interface ComposerProps {
  readonly isWorking: boolean;
  /** The runs that Stop ends; queued messages stay. */
  readonly runIds: readonly string[];
  readonly initialText?: string;
  readonly onSent: () => void;
}

/** The input. Enter sends; while a turn runs, it steers the turn, and Alt+Enter queues behind it. */
export function Composer({ isWorking, runIds, initialText = "", onSent }: ComposerProps) {
  const { client } = useGateway();
  const place = useSessionPlace();
  const [text, setText] = useState(initialText);
  const [attachments, setAttachments] = useState<readonly Attachment[]>([]);
  const [error, setError] = useState<string | null>(null);
  const [isSending, setIsSending] = useState(false);
  // Kept until the gateway has answered: a repeated send with the same key starts no second run.
  const sendKey = useRef<string | null>(null);
  const input = useRef<HTMLTextAreaElement>(null);
  const files = useRef<HTMLInputElement>(null);
  const isComposing = useRef(false);

  useLayoutEffect(() => {
    const area = input.current;
    // Resizing in the middle of a composition closes the window of some input methods.
    if (area === null || isComposing.current) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, 240)}px`;
  }, [text]);

  const send = async (queueMode?: QueueMode) => {
    const message = text.trim();
    if ((message === "" && attachments.length === 0) || isSending) return;
    setIsSending(true);
    setError(null);
    try {
      sendKey.current ??= newId();
      await client.call("chat.send", {
        sessionKey: place.key,
        ...(place.userId === undefined ? {} : { userId: place.userId }),
        ...composeMessage(message, attachments),
        idempotencyKey: sendKey.current,
        ...(queueMode === undefined ? {} : { queueMode }),
      });
      sendKey.current = null;
      // What was written while the message was on its way stays.
      setText((now) => (now === text ? "" : now));
      setAttachments((now) => (now === attachments ? [] : now));
      onSent();
    } catch (failure) {
      setError(errorText(failure));
    } finally {
      setIsSending(false);
      input.current?.focus();
    }
  };

  const stop = async () => {
    setError(null);
    const { key, userId } = place;
    try {
      for (const runId of runIds)
        await client.call("chat.abort", {
          sessionKey: key,
          runId,
          ...(userId === undefined ? {} : { userId }),
        });
    } catch (failure) {
      setError(errorText(failure));
    }
  };

  const onKeyDown = (event: KeyboardEvent) => {
    // 229: the key belongs to an input method, also where isComposing is late.
    if (event.nativeEvent.isComposing || event.keyCode === 229 || event.key !== "Enter" || event.shiftKey)
      return;
    event.preventDefault();
    if (!isWorking) return void send();
    void send(event.altKey ? "followup" : "steer");
  };

  const attach = async (list: Iterable<File>) => {
    for (const file of list) {
      try {
        const attachment = await attachmentOf(file);
        setAttachments((before) => [...before, attachment]);
      } catch (failure) {
        setError(errorText(failure));
      }
    }
  };

  const onPaste = (event: ClipboardEvent) => {
    const { files: pasted } = event.clipboardData;
    if (pasted.length > 0) {
      event.preventDefault();
      void attach(pasted);
      return;
    }
    const words = event.clipboardData.getData("text/plain");
    if (words.length <= longestPaste) return;
    event.preventDefault();
    setAttachments((before) => [...before, textAttachment("pasted.txt", words)]);
  };

  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    void attach(event.dataTransfer.files);
  };

  return (
    <form
      className={styles.composer}
      onSubmit={(event) => {
        event.preventDefault();
        void send(isWorking ? "steer" : undefined);
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={onDrop}
    >
      {error !== null && (
        <p className={styles.error} role="alert">
          {error}{" "}
          <button type="button" onClick={() => setError(null)} aria-label="Dismiss">
            <X size={13} />
          </button>
        </p>
      )}
      {attachments.length > 0 && (
        <ul className={styles.attachments} aria-label="Attachments">
          {attachments.map((attachment) => (
            <li key={attachment.id}>
              {attachment.preview === null ? null : <img src={attachment.preview} alt="" />}
              {attachment.name}
              <button
                type="button"
                aria-label={`Remove ${attachment.name}`}
                onClick={() => setAttachments((all) => all.filter(({ id }) => id !== attachment.id))}
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
          onChange={({ target }) => void attach(target.files ?? [])}
        />
        <textarea
          ref={input}
          rows={1}
          value={text}
          aria-label="Message"
          placeholder={isWorking ? "Steer the turn that runs" : "Write a message"}
          onChange={({ target }) => {
            setText(target.value);
            // Another text is another message.
            if (!isSending) sendKey.current = null;
          }}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
          onCompositionStart={() => {
            isComposing.current = true;
          }}
          onCompositionEnd={() => {
            isComposing.current = false;
          }}
        />
        {isWorking && (
          <>
            <button
              type="button"
              className={styles.button}
              onClick={() => void send("followup")}
              disabled={isSending || text.trim() === ""}
            >
              Queue <Kbd keys="Alt+Enter" />
            </button>
            <button type="button" className={styles.button} onClick={() => void stop()}>
              <Square size={12} aria-hidden /> Stop
            </button>
          </>
        )}
        <button
          type="submit"
          className={styles.send}
          disabled={isSending || (text.trim() === "" && attachments.length === 0)}
        >
          <ArrowUp size={15} aria-hidden /> {isWorking ? "Steer" : "Send"} <Kbd keys="Enter" />
        </button>
      </div>
    </form>
  );
}
