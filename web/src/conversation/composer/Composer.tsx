import {
  type Attachment,
  AttachmentPrimitive,
  type CompleteAttachment,
  ComposerPrimitive,
  type PendingAttachment,
  useAui,
  useAuiState,
} from '@assistant-ui/react'
import { clsx } from 'clsx'
import { ArrowUp, CornerDownRight, LoaderCircle, Paperclip, SlidersHorizontal, Square, X } from 'lucide-react'
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from 'react'
import type { Place } from '@/api/commands'
import type { Part } from '@/api/types'
import { deferred } from '@/app/deferred'
import { useSession } from '@/app/session'
import { attachments, type Detail, detailOf, setDetail } from '@/conversation/composer/attachments'
import { Completion, useCompletion } from '@/conversation/composer/Completion'
import { useDraft } from '@/conversation/composer/draft'
import { partsOf } from '@/conversation/runtime'
import { isOneOf, useActionKeys } from '@/keys/configured'
import { text } from '@/text'
import { IconButton } from '@/ui/Button'
import { Menu } from '@/ui/Menu'
import { notifyError } from '@/ui/toasts'

const Dictation = deferred(() => import('@/conversation/composer/Dictation'))

interface Props {
  /** The storage key of the draft. */
  id: string
  busy: boolean
  /** Send a prompt. `delivery` applies if a run is active. */
  send: (parts: Part[], delivery?: 'queue' | 'steer') => Promise<void> | void
  /** Stop the run. Null if there is none. */
  stop: (() => void) | null
  /** Pickers in the row below the field. */
  pickers: ReactNode
  /** Run a text if it is a command. Return false otherwise. */
  command: (text: string) => Promise<boolean>
  /** The route that lists the files to offer after `@`. */
  files: string
  /** Where commands run. */
  place: Place
  autoFocus?: boolean
}

/** Upload an attachment and return it with its stored file. An attachment of an unsent prompt may already be uploaded. */
async function uploaded(attachment: Attachment): Promise<CompleteAttachment> {
  return attachment.status.type === 'complete'
    ? (attachment as CompleteAttachment)
    : attachments.send(attachment as PendingAttachment)
}

/** The message field. Enter sends, or queues during a run; Ctrl+Enter steers the run. */
export function Composer({ id, busy, send, stop, pickers, command, files, place, autoFocus = false }: Props) {
  const aui = useAui()
  const field = useRef<HTMLTextAreaElement>(null)
  const submitting = useRef(new Set<string>())
  const session = useSession()
  const completion = useCompletion(field, files, place)
  useDraft(id)

  async function submit(delivery: 'queue' | 'steer') {
    const state = aui.composer.getState()
    if (!state.text.trim() && !state.attachments.length) return
    const draft = JSON.stringify([state.text, state.attachments.map((attachment) => attachment.id)])
    if (submitting.current.has(draft)) return // submitted again before the field was emptied
    submitting.current.add(draft)
    try {
      if (!state.attachments.length && (await command(state.text))) {
        if (aui.composer.getState().text === state.text) aui.composer.setText('')
        return
      }
      const complete = await Promise.all(state.attachments.map(uploaded))
      const parts = partsOf({ content: [{ type: 'text', text: state.text }], attachments: complete })
      const sent = send(parts, busy ? delivery : undefined) // stores the prompt before the field is emptied
      await aui.composer.reset()
      submitting.current.delete(draft)
      await sent
    } catch (error) {
      if (!aui.composer.getState().text) aui.composer.setText(state.text)
      notifyError(error)
    } finally {
      submitting.current.delete(draft)
    }
  }

  const [sending, stopping] = [useActionKeys('enter'), useActionKeys('stop')]

  function onKeyDown(event: KeyboardEvent) {
    if (event.nativeEvent.isComposing) return
    if (completion.onKey(event)) return
    const steers = event.key === 'Enter' && !event.shiftKey && (event.ctrlKey || event.metaKey)
    if ((steers || isOneOf(sending, event.nativeEvent)) && !isTouch()) {
      event.preventDefault()
      void submit(steers ? 'steer' : 'queue')
    } else if (stop && isOneOf(stopping, event.nativeEvent)) {
      event.preventDefault()
      stop()
    }
  }

  return (
    <ComposerPrimitive.AttachmentDropzone asChild>
      <ComposerPrimitive.Root
        onSubmit={(event) => {
          event.preventDefault()
          void submit('queue')
        }}
        className="group/composer @container relative rounded-3xl border border-line-strong/60 bg-raised shadow-raised transition-colors focus-within:border-line-strong data-[dragging=true]:border-accent data-[dragging=true]:bg-accent-soft"
      >
        <Completion completion={completion} />
        <Attached />
        <ComposerPrimitive.Input
          ref={field}
          aria-label={text.composer.label}
          placeholder={busy ? text.composer.followUp : text.composer.placeholder}
          submitMode="none"
          cancelOnEscape={false}
          autoFocus={autoFocus}
          minRows={1}
          maxRows={12}
          onKeyDown={onKeyDown}
          onSelect={completion.onSelect}
          {...completion.aria}
          className="block w-full resize-none bg-transparent px-5 pt-4 pb-1 text-base leading-relaxed outline-none placeholder:text-faint"
        />
        <div className="flex items-center gap-1 px-2.5 pb-2.5 max-md:flex-wrap max-md:gap-x-0 max-sm:px-1">
          <ComposerPrimitive.AddAttachment asChild multiple>
            <IconButton label={text.composer.attach} className="rounded-full!">
              <Paperclip size={17} aria-hidden />
            </IconButton>
          </ComposerPrimitive.AddAttachment>
          {pickers}
          <div className="ml-auto flex items-center gap-1 max-md:gap-0">
            {session.data?.transcribes && <Dictation done={() => field.current?.focus()} />}
            <Go busy={busy} submit={submit} stop={stop} />
          </div>
        </div>
      </ComposerPrimitive.Root>
    </ComposerPrimitive.AttachmentDropzone>
  )
}

function Go({
  busy,
  submit,
  stop,
}: {
  busy: boolean
  submit: (how: 'queue' | 'steer') => Promise<void>
  stop: (() => void) | null
}) {
  const empty = useAuiState((state) => !state.composer.text.trim() && !state.composer.attachments.length)
  const uploading = useAuiState((state) => state.composer.attachments.some((one) => one.status.type === 'running'))
  return (
    <>
      {busy && !empty && (
        <IconButton label={text.composer.steer} className="rounded-full!" onClick={() => void submit('steer')}>
          <CornerDownRight size={17} aria-hidden />
        </IconButton>
      )}
      {stop && (
        <IconButton label={text.composer.stop} look="plain" className="rounded-full!" onClick={stop}>
          <Square size={13} fill="currentColor" aria-hidden />
        </IconButton>
      )}
      {(!busy || !empty) && (
        <IconButton
          type="submit"
          label={busy ? text.composer.queue : text.composer.send}
          look="primary"
          disabled={empty || uploading}
          className="rounded-full!"
        >
          {uploading ? (
            <LoaderCircle size={17} aria-hidden className="animate-spin" />
          ) : (
            <ArrowUp size={18} aria-hidden />
          )}
        </IconButton>
      )}
    </>
  )
}

function Attached() {
  const any = useAuiState((state) => state.composer.attachments.length > 0)
  return (
    <ul aria-label={text.composer.attached} className={clsx('flex flex-wrap gap-1.5 px-4', any && 'pt-3.5')}>
      <ComposerPrimitive.Attachments components={ATTACHED} />
    </ul>
  )
}

const ATTACHED = { Attachment: AttachedFile }

function AttachedFile() {
  const name = useAuiState((state) => state.attachment.name)
  const file = useAuiState((state) => state.attachment.file)
  const kind = useAuiState((state) => state.attachment.type)
  const type = useAuiState((state) => state.attachment.status.type)
  const picture = useRef<HTMLImageElement>(null)
  const shows = file !== undefined && /^image\/(png|jpeg|gif|webp|avif|bmp)$/.test(file.type)
  useEffect(() => {
    if (!file || !picture.current) return
    const url = URL.createObjectURL(file)
    picture.current.src = url
    return () => URL.revokeObjectURL(url)
  }, [file])
  return (
    <AttachmentPrimitive.Root asChild>
      <li
        className={clsx(
          'flex items-center gap-2 rounded-xl border bg-surface py-1 pr-1 text-sm',
          shows ? 'pl-1' : 'pl-3',
          type === 'incomplete' ? 'border-danger text-danger' : 'border-line',
        )}
      >
        {shows && <img ref={picture} alt="" className="size-9 rounded-lg object-cover" />}
        <span className="max-w-48 truncate">{name}</span>
        {type === 'running' && (
          <LoaderCircle size={14} className="animate-spin text-muted" aria-label={text.composer.uploading} />
        )}
        {kind === 'image' && <DetailMenu />}
        {type === 'incomplete' && <span>{text.composer.uploadFailed}</span>}
        <AttachmentPrimitive.Remove asChild>
          <IconButton label={text.composer.remove(name)} className="size-7">
            <X size={14} aria-hidden />
          </IconButton>
        </AttachmentPrimitive.Remove>
      </li>
    </AttachmentPrimitive.Root>
  )
}

/** The menu of an attached image: the detail in which the model sees it. */
function DetailMenu() {
  const { id, name } = useAuiState((state) => state.attachment)
  const [detail, choose] = useState<Detail>(detailOf(id) ?? 'auto')
  return (
    <Menu
      label={text.composer.detail(name)}
      icon={<SlidersHorizontal size={14} aria-hidden />}
      className="size-7"
      items={(Object.keys(text.composer.details) as Detail[]).map((one) => ({
        label: text.composer.details[one],
        checked: one === detail,
        act: () => {
          setDetail(id, one)
          choose(one)
        },
      }))}
    />
  )
}

/** On a touch keyboard, Enter inserts a new line and the button sends. */
function isTouch(): boolean {
  return matchMedia('(pointer: coarse) and (not (any-pointer: fine))').matches
}
