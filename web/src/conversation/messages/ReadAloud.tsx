import { Square, Volume2 } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { spoken } from '@/conversation/messages/spoken'
import { text } from '@/text'
import { IconButton } from '@/ui/Button'

/** A button that reads an answer aloud with the browser's speech synthesis, or stops reading. */
export function ReadAloud({ markdown }: { markdown: string }) {
  const [reading, setReading] = useState(false)
  const current = useRef<object>(null)
  useEffect(
    () => () => {
      if (current.current) speechSynthesis.cancel()
      current.current = null
    },
    [],
  )

  function read() {
    const pieces = spoken(markdown)
    const own = {}
    speechSynthesis.cancel() // another answer may be read at the moment
    current.current = own
    const end = () => {
      if (current.current !== own) return
      current.current = null
      setReading(false)
    }
    if (!pieces.length) return end()
    setReading(true)
    pieces.forEach((piece, at) => {
      const utterance = new SpeechSynthesisUtterance(piece)
      if (at === pieces.length - 1) utterance.onend = end
      utterance.onerror = end
      speechSynthesis.speak(utterance)
    })
  }

  function stop() {
    current.current = null
    setReading(false)
    speechSynthesis.cancel()
  }

  return (
    <IconButton label={reading ? text.message.stopReading : text.message.readAloud} onClick={reading ? stop : read}>
      {reading ? <Square size={13} fill="currentColor" aria-hidden /> : <Volume2 size={15} aria-hidden />}
    </IconButton>
  )
}
