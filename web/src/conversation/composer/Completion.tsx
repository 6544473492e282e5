import { useAui } from '@assistant-ui/react'
import { useQueryClient } from '@tanstack/react-query'
import { clsx } from 'clsx'
import { Braces, File as FileIcon, FileText, Folder, Slash, Wrench } from 'lucide-react'
import { type KeyboardEvent, type RefObject, useEffect, useId, useState } from 'react'
import type { Place } from '@/api/commands'
import { type Candidate, candidates } from '@/conversation/composer/candidates'
import { text } from '@/text'

export interface Completing {
  listId: string
  found: readonly Candidate[]
  at: number
  choose: (candidate: Candidate) => void
  onKey: (event: KeyboardEvent) => boolean
  onSelect: () => void
  aria: Record<string, unknown>
}

/** A completion request: `@` anywhere, or `/` at the start. */
export interface CompletionRequest {
  sign: '@' | '/'
  word: string
  from: number
  to: number
}

/** Return the completion request at the caret, or null. */
export function completionAt(value: string, caret: number): CompletionRequest | null {
  const before = value.slice(0, caret)
  const slash = /^\/([\w:-]*)$/.exec(before)
  if (slash) return { sign: '/', word: slash[1] ?? '', from: 0, to: caret }
  const found = /(?:^|\s)@([^\s@]*)$/.exec(before)
  return found ? { sign: '@', word: found[1] ?? '', from: caret - (found[1] ?? '').length - 1, to: caret } : null
}

/** Complete files, macros, tools and resources after `@` and commands after `/` while typing. */
export function useCompletion(field: RefObject<HTMLTextAreaElement | null>, files: string, place: Place): Completing {
  const { conversation, project } = place
  const aui = useAui()
  const client = useQueryClient()
  const listId = useId()
  const [asked, setAsked] = useState<CompletionRequest | null>(null)
  const [found, setFound] = useState<readonly Candidate[]>([])
  const [at, setAt] = useState(0)

  useEffect(() => {
    if (!asked) return setFound([])
    const stop = new AbortController()
    const timer = setTimeout(() => {
      candidates(asked, files, { conversation, project }, client, stop.signal).then(
        (next) => {
          if (stop.signal.aborted) return
          setFound(next)
          setAt(0)
        },
        () => setFound([]),
      )
    }, 80)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [asked, files, conversation, project, client])

  function look() {
    const element = field.current
    const next =
      element && element.selectionStart === element.selectionEnd
        ? completionAt(element.value, element.selectionStart)
        : null
    setAsked((old) => (JSON.stringify(old) === JSON.stringify(next) ? old : next))
  }

  function choose(candidate: Candidate) {
    const element = field.current
    if (!asked || !element) return
    const isFile = candidate.kind === 'file' || candidate.kind === 'folder'
    const name = candidate.quoted ?? (isFile && /\s/.test(candidate.text) ? `"${candidate.text}"` : candidate.text)
    const put = `${asked.sign}${name}${candidate.whole ? ' ' : ''}`
    const caret = asked.from + put.length
    aui.composer.setText(element.value.slice(0, asked.from) + put + element.value.slice(asked.to))
    setAsked(null)
    requestAnimationFrame(() => {
      element.focus()
      element.setSelectionRange(caret, caret)
      look()
    })
  }

  function onKey(event: KeyboardEvent): boolean {
    const candidate = found[at]
    if (!candidate) return false
    if (event.key === 'Enter' && !event.shiftKey && candidate.whole && candidate.text === asked?.word) {
      setAsked(null) // nothing is left to complete: Enter sends
      return false
    }
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step) setAt((at + step + found.length) % found.length)
    else if ((event.key === 'Enter' && !event.shiftKey) || event.key === 'Tab') choose(candidate)
    else if (event.key === 'Escape') setAsked(null)
    else return false
    event.preventDefault()
    return true
  }

  const open = found.length > 0
  return {
    listId,
    found,
    at,
    choose,
    onKey,
    onSelect: look,
    aria: open
      ? {
          role: 'combobox',
          'aria-expanded': true,
          'aria-controls': listId,
          'aria-activedescendant': `${listId}-${at}`,
          'aria-autocomplete': 'list',
        }
      : {},
  }
}

const ICONS = { file: FileIcon, folder: Folder, command: Slash, macro: Braces, tool: Wrench, resource: FileText }

/** The list of suggestions above the composer. */
export function Completion({ completion }: { completion: Completing }) {
  const { listId, found, at, choose } = completion
  if (!found.length) return null
  return (
    <div
      id={listId}
      role="listbox"
      aria-label={text.composer.suggestions}
      className="absolute inset-x-0 bottom-full z-10 mb-2 max-h-72 overflow-y-auto rounded-2xl border border-line bg-raised p-1.5 shadow-raised"
    >
      {found.map((candidate, index) => {
        const Icon = ICONS[candidate.kind]
        return (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input keeps the focus and handles the keys
          <div
            key={candidate.text}
            id={`${listId}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            ref={(element) => {
              if (index === at) element?.scrollIntoView({ block: 'nearest' })
            }}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => choose(candidate)}
            className={clsx(
              'flex min-h-9 cursor-pointer items-center gap-2.5 rounded-xl px-2.5 text-sm max-md:min-h-11',
              index === at && 'bg-hover',
            )}
          >
            <Icon size={15} aria-hidden className="shrink-0 text-faint" />
            <span className="min-w-0 truncate font-mono text-[0.8125rem]">{candidate.text}</span>
            <span className="ml-auto min-w-0 truncate text-xs text-faint">{candidate.about}</span>
          </div>
        )
      })}
    </div>
  )
}
