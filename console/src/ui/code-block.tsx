import { Check, Copy } from "lucide-react";
import type { ReactNode } from "react";
import { useEffect, useMemo, useRef, useState } from "react";
import styles from "./code-block.module.css";
import { useOpened } from "./foldable.tsx";
import { foldText } from "./plain-text.ts";

/** Longer text is shown in one color. */
const longestHighlighted = 100_000;
const tail = { tailLines: 300, tailChars: 30_000 };

interface CodeBlockProps {
  readonly text: string;
  readonly language?: string;
  readonly isOpen?: boolean;
}

/**
 * Code or verbatim text. Only the beginning and end of a long text are mounted, and each step shows ten times as much.
 */
export function CodeBlock({ text, language = "", isOpen = false }: CodeBlockProps) {
  // Identified by its beginning, because the text might still grow.
  const [step, setStep] = useOpened(text.slice(0, 200));
  const folded = useMemo(
    () => foldText(text, { headLines: 200 * 10 ** step, headChars: 20_000 * 10 ** step, ...tail }),
    [text, step],
  );
  return (
    <figure className={styles.block}>
      <figcaption className={styles.head}>
        <span>{language}</span>
        <CopyButton text={text} />
      </figcaption>
      <pre className={styles.code} tabIndex={0} dir={language === "" ? "auto" : "ltr"}>
        {folded === null ? (
          <Code text={text} language={language} isOpen={isOpen} />
        ) : (
          <>
            <code>{folded.head}</code>
            <ShowMore hidden={folded.hidden} onClick={() => setStep(step + 1)} />
            <code>{folded.tail}</code>
          </>
        )}
      </pre>
    </figure>
  );
}

/** Shown in place of the middle of a long text. */
export function ShowMore({ hidden, onClick }: { readonly hidden: string; readonly onClick: () => void }) {
  return (
    <button type="button" className={styles.more} dir="ltr" onClick={onClick}>
      {hidden} hidden. Show more
    </button>
  );
}

function Code({ text, language, isOpen }: Required<CodeBlockProps>) {
  const [colored, setColored] = useState<{ readonly text: string; readonly nodes: ReactNode } | null>(null);
  const isColored = language !== "" && !isOpen && text.length <= longestHighlighted;
  useEffect(() => {
    if (!isColored) return;
    let isCurrent = true;
    void import("./highlight-code.tsx").then(
      ({ highlight }) => {
        if (isCurrent) setColored({ text, nodes: highlight(text, language) });
      },
      // While offline, code has no syntax highlighting.
      () => undefined,
    );
    return () => {
      isCurrent = false;
    };
  }, [text, language, isColored]);
  return <code>{isColored && colored?.text === text ? colored.nodes : text}</code>;
}

interface CopyButtonProps {
  readonly text: string;
  readonly label?: string;
  readonly autoFocus?: boolean;
}

export function CopyButton({ text, label = "Copy", autoFocus = false }: CopyButtonProps) {
  const [result, setResult] = useState<"copied" | "failed" | null>(null);
  const button = useRef<HTMLButtonElement>(null);
  const copy = async () => {
    try {
      await copyText(text, button.current as HTMLButtonElement);
      setResult("copied");
      setTimeout(() => setResult(null), 1500);
    } catch {
      setResult("failed");
    }
  };
  const name = result === "copied" ? "Copied" : label;
  return (
    <span className={styles.copying}>
      {result === "failed" && <span role="alert">Copying failed. Select the text instead.</span>}
      <button
        ref={button}
        type="button"
        className={styles.copy}
        onClick={() => void copy()}
        aria-label={name}
        title={name}
        autoFocus={autoFocus}
      >
        {result === "copied" ? <Check size={13} /> : <Copy size={13} />}
      </button>
    </span>
  );
}

/** Pages served over plain HTTP have no clipboard access, except on loopback. There, the browser copies a selection. */
async function copyText(text: string, button: HTMLButtonElement): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  // Added next to the button, because a dialog does not allow focus outside itself.
  button.after(area);
  area.focus({ preventScroll: true });
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  button.focus();
  if (!isCopied) throw new Error("The browser did not allow copying.");
}
