import { Check, Copy } from "lucide-react";
import type { ReactNode } from "react";
import { useEffect, useState } from "react";
import styles from "./code-block.module.css";
import { foldLines, plainText } from "./plain-text.ts";

/** Beyond this a text is shown in one color. */
const longestHighlighted = 100_000;
const headLines = 200;
const tailLines = 300;

interface CodeBlockProps {
  readonly text: string;
  readonly language?: string;
  readonly isOpen?: boolean;
}

export function CodeBlock({ text, language = "", isOpen = false }: CodeBlockProps) {
  const [isWhole, setIsWhole] = useState(false);
  const folded = isWhole ? null : foldLines(text, headLines, tailLines);
  return (
    <figure className={styles.block}>
      <figcaption className={styles.head}>
        <span>{language}</span>
        <CopyButton text={text} />
      </figcaption>
      <pre className={styles.code} tabIndex={0}>
        {folded === null ? (
          <Code text={text} language={language} isOpen={isOpen} />
        ) : (
          <>
            <code>{plainText(folded.head)}</code>
            <button type="button" className={styles.more} onClick={() => setIsWhole(true)}>
              Show {folded.left.toLocaleString("en")} more lines
            </button>
            <code>{plainText(folded.tail)}</code>
          </>
        )}
      </pre>
    </figure>
  );
}

function Code({ text, language, isOpen }: Required<CodeBlockProps>) {
  const [colored, setColored] = useState<{ readonly text: string; readonly nodes: ReactNode } | null>(null);
  const isColored = language !== "" && !isOpen && text.length <= longestHighlighted;
  useEffect(() => {
    if (!isColored) return;
    let isCurrent = true;
    void import("./highlight.tsx").then(({ highlight }) => {
      if (isCurrent) setColored({ text, nodes: highlight(text, language) });
    });
    return () => {
      isCurrent = false;
    };
  }, [text, language, isColored]);
  return <code>{isColored && colored?.text === text ? colored.nodes : plainText(text)}</code>;
}

export function CopyButton({ text, label = "Copy" }: { readonly text: string; readonly label?: string }) {
  const [isDone, setIsDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setIsDone(true);
    setTimeout(() => setIsDone(false), 1500);
  };
  return (
    <button
      type="button"
      className={styles.copy}
      onClick={() => void copy()}
      aria-label={label}
      title={label}
    >
      {isDone ? <Check size={13} /> : <Copy size={13} />}
    </button>
  );
}
