"""Files in messages: attachments, and the dimensions and converted copies of images."""
