"""Raw replies of models, with what is to be read from them."""
