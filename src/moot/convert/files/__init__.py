"""Files of messages: attachments, and the dimensions and copies of images."""
