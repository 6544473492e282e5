import { useAui } from '@assistant-ui/react'
import { clsx } from 'clsx'
import { LoaderCircle, Mic, Square } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { api } from '@/api/client'
import { text } from '@/text'
import { IconButton } from '@/ui/Button'
import { notify, notifyError } from '@/ui/toasts'

const words = text.dictation

/** A button that records speech and adds its transcript to the message field. `done` is called after that. */
export default function Dictation({ done }: { done: () => void }) {
  const aui = useAui()
  const [state, setState] = useState<'idle' | 'starting' | 'recording' | 'transcribing'>('idle')
  const recorder = useRef<MediaRecorder>(null)
  const gone = useRef(false)
  useEffect(() => {
    gone.current = false
    return () => {
      gone.current = true
      recorder.current?.stop()
      recorder.current = null
    }
  }, [])

  async function start() {
    setState('starting')
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true })
      try {
        if (gone.current) release(stream)
        else record(stream)
      } catch (error) {
        release(stream)
        throw error
      }
    } catch (error) {
      setState('idle')
      notifyError(problemOf(error))
    }
  }

  function record(stream: MediaStream) {
    const pieces: Blob[] = []
    const started = new MediaRecorder(stream)
    started.ondataavailable = ({ data }) => pieces.push(data)
    started.onstop = () => {
      release(stream)
      if (gone.current) return
      recorder.current = null
      transcribe(new Blob(pieces, { type: started.mimeType }))
        .catch(notifyError)
        .finally(() => setState('idle'))
    }
    started.start()
    recorder.current = started
    setState('recording')
  }

  async function transcribe(sound: Blob) {
    setState('transcribing')
    const made = await api.post<{ text: string }>('/transcriptions', sound, { headers: { 'content-type': sound.type } })
    if (gone.current) return
    if (!made.text.trim()) notify(words.silence)
    const typed = aui.composer.getState().text
    aui.composer.setText([typed.trimEnd(), made.text.trim()].filter(Boolean).join(' '))
    done()
  }

  function press() {
    if (state === 'recording') recorder.current?.stop()
    else if (state === 'idle') void start()
  }

  const label = { idle: words.start, starting: words.start, recording: words.stop, transcribing: words.transcribing }[
    state
  ]
  const waits = state === 'starting' || state === 'transcribing'
  return (
    <>
      <IconButton
        label={label}
        aria-disabled={waits}
        className={clsx('rounded-full!', state === 'recording' && 'bg-danger-soft! text-danger!')}
        onClick={press}
      >
        {state === 'idle' && <Mic size={17} aria-hidden />}
        {state === 'recording' && <Square size={13} fill="currentColor" aria-hidden className="animate-pulse" />}
        {waits && <LoaderCircle size={17} aria-hidden className="animate-spin" />}
      </IconButton>
      <span role="status" className="sr-only">
        {state === 'recording' ? words.recording : state === 'transcribing' ? words.transcribing : ''}
      </span>
    </>
  )
}

/** Turn the microphone off. */
function release(stream: MediaStream): void {
  for (const track of stream.getTracks()) track.stop()
}

/** Return an error that says why nothing can be recorded. */
function problemOf(error: unknown): Error {
  if (!window.isSecureContext) return new Error(words.insecure)
  const name = error instanceof DOMException ? error.name : ''
  if (name === 'NotAllowedError') return new Error(words.denied)
  if (name === 'NotFoundError') return new Error(words.noMicrophone)
  return error instanceof Error ? error : new Error(String(error))
}
